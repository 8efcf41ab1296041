"""Every example of the section on patterns of docs/language.md, run; the definition says how many reports there are."""

import json
import re
from pathlib import Path

import pytest

from tidings import lang
from tidings.errors import PatternError
from tidings.model.patterns import Mode
from tidings.patterns.definition import SeenEvent, list_reports

PAGE = (Path(__file__).parents[4] / "docs" / "language.md").read_text(encoding="utf-8").split("## 9. Patterns")[1]
SECOND = 1_000_000


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


def cells(line):
    return [cell.strip() for cell in line.split(" | ")]


def examples():
    for block in blocks("matches"):
        for line in block.splitlines():
            expression, events, counts = cells(line)
            yield expression, events, [int(count) for count in counts.split()]


def with_filters(expression, *, keyed=False):
    bare = re.sub(r"t\([^)]*\)|\d+ \w+", "", expression)
    words = set(re.findall(r"\b[a-z]\b(?!:)", bare))
    also = " and key = $k" if keyed else ""
    return "\n".join([*(f"{name} = kind = '{name}'{also}" for name in sorted(words)), expression])


def stream_of(events, names):
    """The events of a line as the definition sees them, and the time up to which it is told."""
    blocks, now, until = [], -1, None
    for event in events.split():
        symbol, _, at = event.partition("@")
        now = int(at) if at else now + 1
        kind, _, key = symbol.partition("/")
        until = now * SECOND
        if kind != ".":
            blocks.append(SeenEvent(now * SECOND, frozenset({kind}) & names, {"key": key} if key else {}))
    return blocks, until


@pytest.mark.parametrize(("expression", "events", "counts"), list(examples()))
def test_example_gives_so_many_reports(expression, events, counts):
    pattern = lang.parse_pattern(with_filters(expression, keyed="/" in events))
    stream, until = stream_of(events, {named.name for named in pattern.filters})
    assert [len(list_reports(pattern, stream, mode, until=until)) for mode in Mode] == counts
    assert lang.parse_pattern(lang.render_pattern(pattern)) == pattern


def test_the_page_has_its_examples():
    assert len(list(examples())) > 35


@pytest.mark.parametrize("text", blocks("pattern"))
def test_pattern_example_round_trips(text):
    pattern = lang.parse_pattern(text)
    assert lang.parse_pattern(lang.render_pattern(pattern, "json"), notation="json") == pattern


def test_json_example_round_trips_and_fits_the_published_schema():
    jsonschema = pytest.importorskip("jsonschema")
    (source,) = blocks("pattern-json")
    pattern = lang.parse_pattern(source, notation="json")
    assert lang.parse_pattern(lang.render_pattern(pattern)) == pattern
    schema = (Path(lang.__file__).parent / "pattern.schema.json").read_text(encoding="utf-8")
    jsonschema.validate(json.loads(source), json.loads(schema))


def test_file_example_is_read():
    (text,) = blocks("pattern-file")
    blocks_read = lang.read_patterns(text)
    assert [(block.name, block.mode, block.limit) for block in blocks_read] == [
        ("intrusion", Mode.RESTART, None),
        ("compromised", Mode.ANY, 10),
    ]
    assert blocks_read[0].pattern == lang.parse_pattern(blocks("pattern")[0])
    assert lang.read_patterns(lang.render_patterns(blocks_read)) == blocks_read


def same_trees():
    table = PAGE.split("| written | is |")[1].split("\n\n")[0]
    for line in table.splitlines()[2:]:
        yield re.findall("`([^`]+)`", line)


@pytest.mark.parametrize(("first", "second"), list(same_trees()))
def test_two_spellings_are_one_tree(first, second):
    if first.startswith("5 s"):
        first, second = f"a ; b @ {first}", f"a ; b @ {second}"
    assert lang.parse_pattern(with_filters(first)) == lang.parse_pattern(with_filters(second))


def test_what_the_page_says_is_refused_is_refused():
    for expression in ("a ; (b ; c) within 10 min", "a ; b @ 5 s < t(b) - t(a) < 2 s"):
        assert expression.partition("@ ")[2] in PAGE
        with pytest.raises(PatternError):
            lang.parse_pattern(with_filters(expression))
    first, second = "a ; ((b ; c) within 10 min)", "(a ; (b ; c)) within 10 min"
    assert first in PAGE
    assert second in PAGE
    assert lang.parse_pattern(with_filters(first)) != lang.parse_pattern(with_filters(second))


def test_the_refusal_on_the_page_is_what_is_printed():
    (shown,) = blocks("text")
    with pytest.raises(PatternError) as caught:
        lang.parse_pattern("fail = status = 'denied'\nenter = status = 'success'\nfail ; entr")
    assert str(caught.value) == shown.rstrip("\n")
