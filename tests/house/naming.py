"""What the names of the code are held to: verbs for functions, nouns for variables, one class for a name.

`python -m tests.house.naming [FOLDER ...]` lists what breaks the rules below these folders.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "tidings"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


IRREGULAR = _words("""
    begun bent bound bought broken brought built caught chosen come cut dealt done drawn driven fallen fed felt found
    forgotten frozen given gone grown heard held hidden kept known laid led left lent lost made meant met mown paid
    proven put read ridden risen run said seen sent set shaken shown shut sought spent split spread sprung stood stuck
    struck sworn swept taken taught thought thrown told understood won worn woven written foretold torn
""")
"""Past participles that do not end in -ed."""

ALSO_VERBS = _words("come cut put read run set shut split spread")
"""Participles that are verbs as well: `read_csv`, `run_batch`, `split_rows`; alone they are verbs too."""

NO_PARTICIPLE = _words("feed seed need embed speed exceed proceed shed bed red seeded unused")
"""Words in -ed that are no participles, or adjectives of the field."""

BANNED = _words("""
    told one found given there held known here what foretold crossed dealt turned passed taken heard said meant
""")
"""Variables that name nothing of the field; a noun says what is in them."""


def is_participle(word: str) -> bool:
    """Tell whether a word is a past participle and no verb."""
    word = word.strip("_").lower()
    if word in ALSO_VERBS or word in NO_PARTICIPLE:
        return False
    return word in IRREGULAR or (len(word) > 3 and word.endswith("ed") and not word.endswith("eed"))


def first_word(name: str) -> str:
    """Return the first word of a name in snake case."""
    return name.strip("_").split("_")[0]


def functions_of(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, bool]]:
    """Yield each function with whether it is a property (an attribute to its readers, so a noun)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = {ast.unparse(decorator).split(".")[-1].split("(")[0] for decorator in node.decorator_list}
            yield node, bool(decorators & {"property", "cached_property", "setter"})


def participles(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield functions whose name begins with a participle, properties whose name is nothing but one."""
    for node, is_property in functions_of(tree):
        if node.name.startswith("__"):
            continue
        name = node.name.strip("_")
        bare = is_participle(name) and "_" not in name if is_property else is_participle(first_word(name))
        if bare:
            yield f"{path}:{node.lineno}: function `{node.name}` is a past participle"


def variables(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield variables, parameters and fields whose names are no nouns of the field."""
    for node in ast.walk(tree):
        name = ""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.attr
        if name.strip("_") in BANNED:
            yield f"{path}:{node.lineno}: variable `{name}`"


def repeated_classes(trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Yield public class names that are defined in more than one place."""
    homes: dict[str, list[Path]] = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(path)
    for name, paths in sorted(homes.items()):
        if len(paths) > 1:
            yield f"class `{name}` is defined in {', '.join(map(str, paths))}"


def parse_sources(folders: list[Path]) -> dict[Path, ast.Module]:
    """Return the syntax tree of each Python file below the folders."""
    paths = sorted(path for folder in folders for path in ([folder] if folder.is_file() else folder.rglob("*.py")))
    return {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def broken_rules(folders: list[Path]) -> list[str]:
    """List what breaks the rules below these folders."""
    trees = parse_sources(folders)
    lines = [line for path, tree in trees.items() for rule in (participles, variables) for line in rule(path, tree)]
    return [*lines, *repeated_classes(trees)]


if __name__ == "__main__":
    broken = broken_rules([Path(name).resolve() for name in sys.argv[1:]] or [SOURCE])
    kinds = defaultdict(int)
    for line in broken:
        kinds[re.sub(r"`.*", "", line.split(": ", 1)[-1])] += 1
        print(line)  # noqa: T201
    print(dict(kinds))  # noqa: T201
