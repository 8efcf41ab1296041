"""Every file, module and name of the code that the documents mention exists.

Documents for users are held to paths, links and dotted names such as `tidings.testing.checks`. Documents about the code
are held to more: there `lang.filters.notations.parse`, too, is a name of ours, and so is each `snake_case` word.
"""

import ast
import functools
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "tidings"
GLOSSARY = ROOT / "docs" / "glossary.md"
PACKAGES = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())

ABOUT_CODE = [
    ROOT / "CONTRIBUTING.md",
    *(ROOT / "docs" / name for name in ("architecture.md", "glossary.md", "papers.md")),
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
    *sorted((PACKAGE / "papers").rglob("*.md")),
]
FOR_USERS = [
    ROOT / "README.md",
    *(path for path in sorted((ROOT / "docs").glob("*.md")) if path not in ABOUT_CODE),
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
    *sorted((ROOT / "benchmarks").rglob("README.md")),
]


def make_id(path):
    return str(path.relative_to(ROOT))


every_document = pytest.mark.parametrize("document", ABOUT_CODE + FOR_USERS, ids=make_id)
every_document_about_code = pytest.mark.parametrize("document", ABOUT_CODE, ids=make_id)


# --- what the documents mention -------------------------------------------------------------------


def read_document(document):
    return document.read_text(encoding="utf-8")


def find_code_words(text):
    """The words inside backticks, outside of blocks of code."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return [word for span in re.findall(r"`([^`]+)`", prose) for word in span.split()]


def find_paths(text):
    """Paths that begin in a folder of the repository or of the package: `src/...`, `engine/segment.py`, `lang/`."""
    folders = "src|docs|tests|benchmarks|examples|tools|" + "|".join(PACKAGES)
    in_code = [
        word for word in find_code_words(text) if re.fullmatch(rf"(?:{folders})/[\w./-]*\w/?|(?:{folders})/", word)
    ]
    anywhere = re.findall(r"(?<![\w./-])(?:src/[\w/.-]*\w|(?:\w+/)+\w+\.py)(?!\w)", text)
    return sorted(path for path in {*in_code, *anywhere} if not re.search(r"[A-Z]{2,}$", path))  # `papers/KEY`


def find_dotted_names(text):
    """Names that begin with `tidings.`, unless they are those of files."""
    names = re.findall(r"(?<![\w/.-])tidings((?:\.[A-Za-z_]\w*)+)(?!\w)", text)
    return sorted({name[1:] for name in names if not re.search(r"\.(json|toml|md|py)$", name)})


def find_module_names(text):
    """Names that begin with a package of ours: `lang.filters.notations.parse`."""
    words = {re.sub(r"\(.*\)$", "", word) for word in find_code_words(text)}
    names = (word for word in words if re.fullmatch(rf"(?:{'|'.join(PACKAGES)})(?:\.[A-Za-z_]\w*)+", word))
    return sorted(name for name in names if name != "service.toml")


# --- what exists ----------------------------------------------------------------------------------


@functools.cache
def parse_module(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def iterate_members(node):
    """What a module or class defines or imports by name, with the nodes of classes and functions."""
    for child in ast.walk(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            yield child.name, child
        elif isinstance(child, ast.Name | ast.Attribute) and isinstance(child.ctx, ast.Store):
            yield (child.id if isinstance(child, ast.Name) else child.attr), None
        elif isinstance(child, ast.alias):
            yield (child.asname or child.name), None


def is_defined(dotted):
    """Whether a dotted name leads from the package over folders and modules to something that is defined there."""
    folder, parts = PACKAGE, dotted.split(".")
    while parts and (folder / parts[0]).is_dir():
        folder, parts = folder / parts[0], parts[1:]
    file = folder / f"{parts[0]}.py" if parts else folder / "__init__.py"
    file, parts = (file, parts[1:]) if file.exists() else (folder / "__init__.py", parts)
    node = parse_module(file)
    for position, part in enumerate(parts):
        nodes = dict(iterate_members(node))
        if part not in nodes:
            return False
        node = nodes[part]
        if node is None:
            return position == len(parts) - 1
    return True


@functools.cache
def collect_words_of_code():
    files = [*ROOT.glob("Makefile"), *ROOT.glob("pyproject.toml"), *ROOT.glob("tests/conftest.py")]
    files += [
        path for folder in ("src", "benchmarks", "tools") for path in (ROOT / folder).rglob("*") if path.is_file()
    ]
    code_files = (path for path in files if path.suffix in {"", ".py", ".toml", ".lark", ".json"})
    return {word for path in code_files for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}


@every_document
def test_paths_lead_to_files(document):
    bases = (ROOT, PACKAGE, document.parent, ROOT / "benchmarks")  # the last: studies, such as `papers/poset`
    missing = [
        path for path in find_paths(read_document(document)) if not any((base / path).exists() for base in bases)
    ]
    assert not missing


@every_document
def test_links_lead_somewhere(document):
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", read_document(document))
    local = [target for target in targets if not re.match(r"[a-z]+:", target)]
    assert not [target for target in local if not (document.parent / target).exists()]


@every_document
def test_dotted_names_are_defined(document):
    assert not [name for name in find_dotted_names(read_document(document)) if not is_defined(name)]


@every_document_about_code
def test_names_of_modules_are_defined(document):
    assert not [name for name in find_module_names(read_document(document)) if not is_defined(name)]


@every_document_about_code
def test_identifiers_are_those_of_the_code(document):
    words = {word.strip(".,:;()") for word in find_code_words(read_document(document))}
    identifiers = {word for word in words if re.fullmatch(r"[a-z]{2,}_\w+|[A-Z]{2,}_\w+|(?:[A-Z][a-z]+){2,}", word)}
    unknown = sorted(identifiers - collect_words_of_code())
    assert not unknown


# --- docstrings and comments ----------------------------------------------------------------------


@functools.cache
def collect_commentary(path):
    """The docstrings and comments of a module."""
    source = path.read_text(encoding="utf-8")
    texts = [node.value for node in ast.walk(parse_module(path)) if isinstance(node, ast.Constant)]
    comments = re.findall(r"# (.*)$", source, re.MULTILINE)
    return "\n\n".join([*(text for text in texts if isinstance(text, str) and len(text) > 20), *comments])


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_and_comments_name_what_exists(package):
    missing = []
    for path in sorted((PACKAGE / package).rglob("*.py")):
        text = collect_commentary(path)
        names = [name for name in find_module_names(text) if not name.startswith("spark.") and not name.endswith(".py")]
        missing += [(make_id(path), name) for name in {*names, *find_dotted_names(text)} if not is_defined(name)]
        paths = re.findall(r"(?<![\w./-])(?:docs|tests|src|benchmarks)/[\w./-]*\w", text)
        stale = (name for name in paths if not any(ROOT.glob(f"{name}*")) and "KEY" not in name)
        missing += [(make_id(path), name) for name in stale]
    assert not missing


# --- the map and the glossary ---------------------------------------------------------------------


def list_layers():
    contracts = tomllib.loads(read_document(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["id"] == "layers")
    return [re.findall(r"\w+", layer) for layer in layers if "__main__" not in layer]


def list_drawn_layers(document):
    picture = re.search(r"```\n( +cli .*?)```", read_document(document), re.DOTALL)[1]
    return [re.findall(r"\w+", re.match(r" *(\w+(?: \| \w+)*)", line)[1]) for line in picture.splitlines()]


def test_the_picture_of_layers_is_the_contract():
    assert list_drawn_layers(ROOT / "docs" / "architecture.md") == list_layers()


def test_the_readme_draws_the_layers_that_do_something():
    layers = [
        [name for name in layer if name not in {"errors", "version", "forks", "installation"}]
        for layer in list_layers()
    ]
    assert list_drawn_layers(ROOT / "README.md") == [layer for layer in layers if layer]


@functools.cache
def list_glossary_rows():
    """Each row of the glossary as its cells: the word with what is around it, the meaning, the owner."""
    lines = [line for line in read_document(GLOSSARY).splitlines() if line.startswith("|")]
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    return [row for row in rows if row[0] != "word" and set(row[0]) != {"-"}]


def find_owners(owner):
    """The texts of the modules that a glossary row names; those of studies are outside of the package."""
    for name in re.findall(r"`([\w.]+)`", owner):
        path = (ROOT if name.startswith("benchmarks.") else PACKAGE).joinpath(*name.split("."))
        yield read_document(path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py")


def has_word(text, word):
    """Whether a word of the glossary is in a text: as words, in snake_case or in CamelCase, singular or plural."""
    *parts, last = word.split()
    ending = rf"{last[:-1]}(?:y|ies)" if last.endswith("y") else rf"{last}(?:e?s)?"
    words = r"[\s_-]*".join([*parts, ending])
    camel_case = "".join(part.capitalize() for part in word.split())
    return re.search(rf"(?i:(?<![a-z]){words}(?![a-z]))|{camel_case}", text) is not None


def test_the_glossary_has_each_word_once():
    rows = list_glossary_rows()
    assert len(rows) > 90
    words = [word for word, _, _ in rows]
    assert not [word for word in words if not re.fullmatch(r"\*[a-z -]+\*", word)], "a word is not qualified"
    assert len(words) == len(set(words))
    assert not [word for word, meaning, _ in rows if re.search(r"\. ", meaning) or not meaning.endswith(".")]


@pytest.mark.parametrize(("word", "owner"), [(row[0].strip("*"), row[-1]) for row in list_glossary_rows()])
def test_the_module_that_owns_a_word_uses_it(word, owner):
    texts = list(find_owners(owner))
    assert texts
    assert all(has_word(text, word) for text in texts)


@pytest.mark.parametrize("text", ["a graph cell", "graph_cells = 1", "class GraphCells:", "each graph\n    cell"])
def test_a_word_is_found_in_the_forms_that_code_gives_it(text):
    assert has_word(text, "graph cell")


@pytest.mark.parametrize("text", ["a cell", "paragraph cells", "cell of a graph", ""])
def test_a_word_that_is_not_there_is_not_found(text):
    assert not has_word(text, "graph cell")
