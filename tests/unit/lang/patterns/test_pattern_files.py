"""Files of patterns: blocks and JSON lines, and every mistake with its line."""

import json

import pytest

from tidings import lang
from tidings.errors import PatternError
from tidings.model.patterns import Mode

FILE = """\
# attacks
pattern intrusion
  fail  = status = 'denied'  and ip = $x
  enter = status = 'success' and ip = $x
  f1:fail ; f2:fail ; f3:fail @ t(f3) - t(f1) < 5 min ; enter

pattern brute-force mode any limit 10  # many
  fail = status = 'denied' and ip = $x and
         pattern like 'x*'
  fail{3,} within 1 min
Pattern `two words` Mode NEXT
  a = kind = 'a'
  a ; x:a
"""


def test_blocks_are_read_with_their_modes_and_limits():
    blocks = lang.read_patterns(FILE)
    assert [(block.name, block.mode, block.limit) for block in blocks] == [
        ("intrusion", Mode.RESTART, None),
        ("brute-force", Mode.ANY, 10),
        ("two words", Mode.NEXT, None),
    ]
    assert blocks[0].pattern == lang.parse_pattern(FILE[FILE.index("  fail  =") : FILE.index("pattern brute")])
    assert lang.read_patterns(lang.render_patterns(blocks)) == blocks


def test_json_lines_hold_text_or_trees():
    blocks = lang.read_patterns(FILE)
    lines = [
        json.dumps({"name": blocks[0].name, "pattern": lang.render_pattern(blocks[0].pattern)}),
        "",
        "# the others as trees",
        *(
            json.dumps(
                {
                    "name": block.name,
                    "pattern": json.loads(lang.render_pattern(block.pattern, "json")),
                    "mode": block.mode,
                }
                | ({"limit": block.limit} if block.limit else {})
            )
            for block in blocks[1:]
        ),
    ]
    assert lang.read_patterns("\n".join(lines)) == blocks


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing yet\n-- at all"])
def test_a_file_may_be_empty(text):
    assert lang.read_patterns(text) == []
    assert lang.render_patterns([]) == ""


def messages(text):
    with pytest.raises(PatternError) as caught:
        lang.read_patterns(text)
    return caught.value, [mistake.message for mistake in caught.value.mistakes]


def test_every_mistake_of_a_file_is_reported_with_its_line():
    text = """\
pattern one
  a = kind = 'a'
  a ; bb

pattern two mode sometimes
  a = kind == 'a'
  a
pattern one
  a = kind = 'a'
  a @ t(a) - t(b) < 5
"""
    problem, lines = messages(text)
    assert [message.split("`")[0] for message in lines] == [
        "line 3: no filter is called ",
        "line 5: unknown mode ",
        "line 6: expected an attribute, a number, quoted text, a date, an address or ",
        "line 8: two patterns are called ",
        "line 10: a duration has its unit: ",
    ]
    places = [text[mistake.start : mistake.end] for mistake in problem.mistakes]
    assert [places[i] for i in (0, 2, 3, 4)] == ["bb", "=", "one", "5"]
    assert "    a ; bb\n        ^^" in str(problem)


HEADS = [
    ("pattern", "begins with a line `pattern NAME`"),
    ("a ; b", "begins with a line `pattern NAME`"),
    ("pattern 'quoted'", "a pattern's name is a word, or stands in backticks"),
    ("pattern x mod any", "expected `mode MODE` or `limit N` once, found `mod`"),
    ("pattern x mode", "expected `mode MODE` or `limit N` once, found `mode`"),
    ("pattern x mode any mode next", "once, found `mode`"),
    ("pattern x mode overlapp", "unknown mode `overlapp`; did you mean `overlap`?"),
    ("pattern x mode any limit 0", "a limit is a whole number from 1 on, not `0`"),
    ("pattern x limit 5", "`limit` goes with mode any, not with mode restart"),
    ("pattern `a\\q`", "unknown escape"),
]


@pytest.mark.parametrize(("head", "message"), HEADS)
def test_a_head_is_refused_at_its_line(head, message):
    _, lines = messages(f"# first\n{head}\n  a = k = 1\n  a")
    assert lines[0].startswith("line 2: ")
    assert message in lines[0]


LINES = [
    ('{"name": "x"}', "a line is an object with `name` and `pattern`"),
    ('{"name": "x", "pattern": "a", "mod": "any"}', "a line is an object with `name` and `pattern`"),
    ('{"name": 5, "pattern": "a = k = 1\\na"}', "`name` is text"),
    ('{"name": "x", "pattern": "a = k = 1\\nb"}', "no filter is called `b`"),
    ('{"name": "x", "pattern": {"filters": [], "pattern": {"step": "b"}}}', "no filter is called `b`"),
    ('{"name": "x", "pattern": "a = k = 1\\na", "mode": "all"}', "unknown mode `all`"),
    ('{"name": "x", "pattern": "a = k = 1\\na", "mode": "any", "limit": "many"}', "a limit is a whole number"),
    ('{"name": "x" "pattern": "a"}', "not JSON"),
    ('{"name": "y", "pattern": "a = k = 1\\na"}', "two patterns are called `y`"),
    ('{"name": "x", "pattern": 5}', "a pattern is an object"),
]


@pytest.mark.parametrize(("line", "message"), LINES)
def test_a_json_line_is_refused_at_its_line(line, message):
    good = '{"name": "y", "pattern": "a = k = 1\\na"}'
    _, lines = messages(f"{good}\n\n{line}\n")
    assert lines[0].startswith("line 3: ")
    assert message in lines[0]


def test_a_mistake_in_the_text_of_a_json_line_is_found_inside_it():
    problem, _ = messages('{"name": "x", "pattern": "a = k = 1\\na ; b"}')
    assert str(problem).endswith("(at $.pattern, line 2, column 5)")
    problem, _ = messages('{"name": "x", "pattern": {"filters": [], "pattern": {"step": "b"}}}')
    assert str(problem).endswith("(at $.pattern.pattern.step)")


def test_a_limit_belongs_to_mode_any():
    (block,) = lang.read_patterns("pattern x\n  a = k = 1\n  a")
    with pytest.raises(PatternError, match="`limit` goes with mode any"):
        lang.WrittenPattern("x", block.pattern, Mode.NEXT, 5)
    with pytest.raises(PatternError, match="1 or more"):
        lang.WrittenPattern("x", block.pattern, Mode.ANY, 0)
