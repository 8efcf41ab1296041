"""Imports: lines of JSON into subscriptions, checked beside the event loop and stored in one transaction.

The body is cut into blocks of whole lines. An executor checks blocks, a few at a time: a thread for a small import, a
process for a large one, so that other requests are served meanwhile. A thread of the store takes the checked blocks in
their order. Memory holds `BLOCKS_AHEAD` blocks, however long the body is. Where a line is refused, all or nothing goes
on checking, so that the report names every bad line, and stores nothing.
"""

from __future__ import annotations

import asyncio
import queue
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from tidings.engine.explain.report import pluralize
from tidings.service.api.block_checks import CheckedBlock, ImportRules, check_block, list_secretless, open_drafts
from tidings.service.api.check_process import CheckProcess
from tidings.service.api.problems import Problem
from tidings.service.refusals import MAX_MISTAKES, RequestMistake, make_mistake

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping

    from tidings.service.checking import SubscriptionChecker
    from tidings.service.store.base import Imported, QuotaExceeded
    from tidings.service.subscription import SubscriptionDraft

BLOCK_BYTES = 512_000
"""Bytes of a block, up to the end of its last line."""

BLOCKS_AHEAD = 4
"""Blocks that are being checked, or wait for the store, at most."""

PROCESS_BYTES = 4_000_000
"""From so many bytes on, a body is checked by a process: it takes a second or two to start."""


DeliveryFinder: TypeAlias = "Callable[[Collection[str]], Mapping[str, Mapping[str, Any]]]"
"""Returns the deliveries that are stored of some ids."""


class BlockExecutor:
    """Where blocks are checked, one after the other: in a thread, and when they are many in a process behind it."""

    def __init__(
        self, checker: SubscriptionChecker, find_stored: DeliveryFinder, *, process_bytes: int = PROCESS_BYTES
    ) -> None:
        self._checker, self._find_stored, self._process_bytes = checker, find_stored, process_bytes
        self._thread = ThreadPoolExecutor(1, "tidings-import")
        self._process: CheckProcess | None = None
        self._bytes = 0

    def check(self, data: bytes, first: int, rules: ImportRules, *, expected: int = 0) -> Future[CheckedBlock]:
        """Check a block; `expected` is how many bytes are to come, where that is known."""
        self._bytes += len(data)
        is_large = max(self._bytes, expected) >= self._process_bytes
        return self._thread.submit(self._check_in_process if is_large else self._check_here, data, first, rules)

    def _check_here(self, data: bytes, first: int, rules: ImportRules) -> CheckedBlock:
        return check_block(self._checker, data, first, self._complete(rules, data))

    def _check_in_process(self, data: bytes, first: int, rules: ImportRules) -> CheckedBlock:
        if self._process is None:
            self._process = CheckProcess(self._checker)
        return self._process.check(data, first, self._complete(rules, data))

    def _complete(self, rules: ImportRules, data: bytes) -> ImportRules:
        """Return the rules with what is stored of the block's deliveries."""
        ids = list_secretless(data)
        return rules._replace(deliveries=self._find_stored(ids)) if ids else rules

    def close(self) -> None:
        """Give up what has not begun, and end thread and process."""
        self._thread.submit(self._end_process)
        self._thread.shutdown(wait=False)

    def _end_process(self) -> None:
        if self._process is not None:
            self._process.close()


# Cutting and storing ------------------------------------------------------------------------------------


async def cut_blocks(pieces: AsyncIterator[bytes], longest: int, size: int = BLOCK_BYTES) -> AsyncIterator[bytes]:
    """Yield a body in blocks of whole lines; a line of more than `longest` bytes is refused."""
    rest = bytearray()
    async for piece in pieces:
        rest += piece
        while len(rest) >= size:
            end = rest.rfind(b"\n", 0, size) + 1 or rest.find(b"\n", size) + 1
            if not end:
                break
            yield bytes(rest[:end])
            del rest[:end]
        if len(rest) > max(longest, size):
            msg = f"a line has more than {longest:,} bytes, which is the limit; one line is one subscription"
            raise Problem(msg, status=413)
    if rest:
        yield bytes(rest)


class ImportStopped(Problem):
    """Some lines were refused, so nothing was imported."""


@dataclass(slots=True)
class ImportReport:
    """What became of an import so far."""

    imported: int = 0
    refused: int = 0
    mistakes: list[RequestMistake] = field(default_factory=list)

    def add(self, block: CheckedBlock) -> None:
        """Count a block's refusals."""
        self.refused += block.refused
        self.mistakes += block.mistakes[: MAX_MISTAKES - len(self.mistakes)]

    def finish(self, imported: Imported, refusal: QuotaExceeded) -> None:
        """Note what the store has put, and the lines that it left out, each with the refusal."""
        self.imported = imported.count
        self.refused += imported.left_out
        mistake = make_mistake(str(refusal))
        self.mistakes += [replace(mistake, line=place + 1, id=f"{id:.200}") for place, id in imported.first_left_out]
        self.mistakes = sorted(self.mistakes, key=lambda mistake: mistake.line or 0)[:MAX_MISTAKES]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        errors = [mistake.to_dict() for mistake in self.mistakes]
        return {"imported": self.imported, "refused": self.refused, "errors": errors}


class ImportRun:
    """One import: blocks go in at the event loop's side, drafts come out at the store's."""

    def __init__(self, *, partial: bool) -> None:
        self.report = ImportReport()
        self.partial = partial
        self._blocks: queue.SimpleQueue[Future[CheckedBlock] | BaseException | None] = queue.SimpleQueue()
        self._slots = asyncio.Semaphore(BLOCKS_AHEAD)
        self._loop = asyncio.get_running_loop()

    async def put(self, blocks: AsyncIterator[bytes], submit: Callable[[bytes, int], Future[CheckedBlock]]) -> None:
        """Have blocks checked as they come, until there are no more or the store has stopped taking them."""
        first = 1
        async for data in blocks:
            await self._slots.acquire()
            if self._slots_are_void:
                return
            self._blocks.put(submit(data, first))
            first += data.count(b"\n")

    _slots_are_void = False

    def end(self, problem: BaseException | None = None) -> None:
        """Say that no more blocks come; with a problem, nothing is stored."""
        self._blocks.put(problem)

    def release(self) -> None:
        """Let `put` go on although the store takes nothing any more."""
        self._slots_are_void = True
        self._slots.release()

    def iterate_drafts(self) -> Iterator[SubscriptionDraft | None]:
        """Yield a checked draft, or None, for each line.

        Where all or nothing was asked for and a line is bad, raise when all are checked.
        """
        while (block := self._blocks.get()) is not None:
            if isinstance(block, BaseException):
                raise block
            checked = block.result()
            self.report.add(checked)
            if self.partial or not self.report.refused:
                yield from open_drafts(checked)
            self._loop.call_soon_threadsafe(self._slots.release)
        if self.report.refused and not self.partial:
            bad = f"{pluralize(self.report.refused, 'line')} {'was' if self.report.refused == 1 else 'were'} refused"
            msg = f"{bad}, so nothing was imported; `partial=true` imports the others"
            raise ImportStopped(msg, status=422)
