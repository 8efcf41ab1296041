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


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


IRREGULAR = _split_words("""
    begun bent bound bought broken brought built caught chosen come cut dealt done drawn driven fallen fed felt found
    forgotten frozen given gone grown heard held hidden kept known laid led left lent lost made meant met mown paid
    proven put read ridden risen run said seen sent set shaken shown shut sought spent split spread sprung stood stuck
    struck sworn swept taken taught thought thrown told understood won worn woven written foretold torn
""")
"""Past participles that do not end in -ed."""

ALSO_VERBS = _split_words("come cut put read run set shut split spread")
"""Participles that are verbs as well: `read_csv`, `run_batch`, `split_rows`; alone they are verbs too."""

NO_PARTICIPLE = _split_words("feed seed need embed speed exceed proceed shed bed red seeded unused")
"""Words in -ed that are no participles, or adjectives of the field."""

VERBS = _split_words("""
    accepts accumulate acquire adapt add adds admit advance advise agrees align allocate allows analyze announce
    answer append apply are arrange ask asks assemble assert assign attach authenticate await batch begin bench bin
    bind blend broadcast bucket build cache call capture carry cast catch change check choose claim classify clean
    clear close coerce collect combine commit compact compare compares compile complete compute concat concatenate
    connect contain continue convert copy correct cost count cover covers create cut deal decide declare decode
    decompile decrease deduplicate defer define delete deliver demand demote dequeue derive descend describe detach
    detect determinise diagnose digest discard distribute divide document dominates download draft drain draw drop
    dump edit emit encode end enforce enqueue enroll ensure enter enumerate equals erase escape escapes estimate
    eval evaluate exceeds exclude excludes expand expect expire explain export express extend extract fade feed
    fetch file fill filter find fingerprint finish fit fits flag flatten flip flush fold follow follows forecast
    forget fork format freeze fullmatch gather generate get give go group grow guard guess hand handle hash hide
    hint holds hurry identify implies import includes increase index infer init insert inspect install interleave
    intern interpolate intersect invalidate invert invoke issue iterate jit join judge keep kill knows label lacks
    launch lay learn leave lend lengthen limit link list listen lists load locate lock log look lower make map mark
    mask match matches measure meets mend mention merge migrate minimise mix move multiply name names narrow needs
    negate nest normalise normalize note notify number observe offer open order overlaps pack pad paint pair parse
    pass patch pause peek persist pick place plan plant play plot pluralize plus point poll pool position post
    prefer prefetch prepare print probe process produce prune publish push put quantify query queue quote raise rank
    reaches read reads rebuild recall receive recode record recount recover redirect reduce refill refresh refuse
    register rehash reject rejoin relate release relink remap remember remove rename render renew renumber reopen
    reorder repack repeat replace report request require reserve reset resolve respond restore restrict resume retry
    reverse review revise revoke rotate round route run sample sanitize satisfies save say scale scan scatter
    schedule score seal search segment select send senses serialize serve set settle shape shard share shift shorten
    show shrink shuffle sift sign silence simplify skip slice snapshot sort spell spend split spot spread stab stage
    stamp start step stop store stream strike strip subscribe subtract suggest sum summarise summarize supervise
    swap sweep sync tabulate tag take takes tally tell test thin tidy time tokenize touch trace train translate
    transpose traverse trim triple truncate try tune uncount undo unite unlink unpack unquote unread unroll unshare
    unwatch update upgrade upload use validate value verify view visit wait walk warm warn watch weigh widen work
    wrap write yield
""")
"""Verbs that functions begin with; one in the third person asks a question (`covers`). A new verb goes in here."""

IDIOMS = _split_words("as can from has is may of on to with after")
"""First words that are no verbs but say what a function is: a conversion, a question, a factory, a handler."""

BANNED = _split_words("""
    told one found given there held known here what foretold crossed dealt turned passed taken heard said meant
""")
"""Variables that name nothing of the field; a noun says what is in them."""


def is_participle(word: str) -> bool:
    """Tell whether a word is a past participle and no verb."""
    word = word.strip("_").lower()
    if word in ALSO_VERBS or word in NO_PARTICIPLE:
        return False
    return word in IRREGULAR or (len(word) > 3 and word.endswith("ed") and not word.endswith("eed"))


def get_first_word(name: str) -> str:
    """Return the first word of a name in snake case."""
    return name.strip("_").split("_")[0]


def walk_functions(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, bool]]:
    """Yield each function with whether it is a property (an attribute to its readers, so a noun)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = {ast.unparse(decorator).split(".")[-1].split("(")[0] for decorator in node.decorator_list}
            yield node, bool(decorators & {"property", "cached_property", "setter"})


def list_participles(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield functions whose name begins with a participle, properties whose name is nothing but one."""
    for node, is_property in walk_functions(tree):
        if node.name.startswith("__"):
            continue
        name = node.name.strip("_")
        bare = is_participle(name) and "_" not in name if is_property else is_participle(get_first_word(name))
        if bare:
            yield f"{path}:{node.lineno}: function `{node.name}` is a past participle"


NAMED_BY_OTHERS = _split_words("command callback composite register_strategy")
"""Decorators of functions that bear a command's name, or a strategy's, which are nouns as those of hypothesis are."""


NAMED_AS_NOUNS = tuple(map(Path, ("src/tidings/testing/strategies", "src/tidings/bench/workloads")))
"""Folders whose public functions may be nouns: a strategy is called by what it yields, as `st.lists` is."""


def list_verbless(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield functions whose names do not begin with a verb; a grammar's rules name the methods of its transformer."""
    exempt = {
        method
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and any("Transformer" in ast.unparse(base) for base in node.bases)
        for method in node.body
    }
    for node, is_property in walk_functions(tree):
        decorators = {ast.unparse(decorator).split("(")[0].split(".")[-1] for decorator in node.decorator_list}
        is_public = not node.name.startswith("_")
        is_named_by_others = is_public and (path.parent in NAMED_AS_NOUNS or decorators & NAMED_BY_OTHERS)
        if is_property or node in exempt or is_named_by_others or node.name.startswith("__"):
            continue
        if get_first_word(node.name) not in VERBS | IDIOMS:
            yield f"{path}:{node.lineno}: function `{node.name}` begins with no verb"


def list_variables(path: Path, tree: ast.Module) -> Iterator[str]:
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


CLASS_FACTORIES = _split_words("Enum StrEnum IntEnum Flag NamedTuple namedtuple TypedDict NewType")
"""Functions that make a class: `Form = StrEnum("Form", ...)`."""


def list_class_names(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the names of classes and type aliases that a module defines, also below `if TYPE_CHECKING`."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.If | ast.Try):
            yield from list_class_names([*node.body, *node.orelse])
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if "TypeAlias" in ast.unparse(node.annotation):
                yield node.target.id
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and is_alias(node):
            yield node.targets[0].id


def is_alias(node: ast.Assign) -> bool:
    """Tell whether an assignment names a type: a capitalised name for another one, a generic type, a union, an enum."""
    name, value = ast.unparse(node.targets[0]).strip("_"), node.value
    if not re.fullmatch(r"[A-Z]\w*[a-z]\w*", name):
        return False
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).split(".")[-1] in CLASS_FACTORIES
    return isinstance(value, ast.Name | ast.Attribute | ast.Subscript | ast.BinOp)


def list_repeated_classes(trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Yield names of classes and type aliases that are defined in more than one place; `_Run` repeats `Run`."""
    homes: dict[str, list[Path]] = defaultdict(list)
    for path, tree in trees.items():
        for name in list_class_names(tree.body):
            homes[name.strip("_")].append(path)
    for name, paths in sorted(homes.items()):
        if len(paths) > 1:
            yield f"class `{name}` is defined in {', '.join(map(str, paths))}"


def is_script(path: Path) -> bool:
    """Tell whether a file is a Python program by its first line."""
    return path.is_file() and path.read_bytes()[:80].startswith(b"#!/usr/bin/env python")


def parse_sources(folders: list[Path]) -> dict[Path, ast.Module]:
    """Return the syntax tree of each Python file below the folders; one without an ending says so in its first line."""
    paths = sorted(path for folder in folders for path in ([folder] if folder.is_file() else folder.rglob("*")))
    paths = [path for path in paths if path.suffix == ".py" or (not path.suffix and is_script(path))]
    return {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def list_broken_rules(folders: list[Path]) -> list[str]:
    """List what breaks the rules below these folders."""
    trees = parse_sources(folders)
    lines = [
        line for path, tree in trees.items() for rule in (list_participles, list_variables) for line in rule(path, tree)
    ]
    return [*lines, *list_repeated_classes(trees)]


if __name__ == "__main__":
    folders = [Path(name).resolve() for name in sys.argv[1:] if name != "--verbs"] or [SOURCE]
    broken = list_broken_rules(folders)
    if "--verbs" in sys.argv:
        broken += [line for path, tree in parse_sources(folders).items() for line in list_verbless(path, tree)]
    kinds = defaultdict(int)
    for line in broken:
        kinds[re.sub(r"`.*", "", line.split(": ", 1)[-1])] += 1
        print(line)  # noqa: T201
    print(dict(kinds))  # noqa: T201
