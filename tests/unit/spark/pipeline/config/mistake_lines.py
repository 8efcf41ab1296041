"""Line numbers in front of a pipeline's mistakes, checked against the file."""

import re


def without_lines(mistakes, text):
    """Return the mistakes without their line numbers, each of which must be the line of the key or table it names."""
    lines = text.splitlines()
    plain = []
    for mistake in mistakes:
        number, rest = re.fullmatch(r"(?:line (\d+): )?(.*)", mistake, re.DOTALL).groups()
        plain.append(rest)
        if number is None:
            continue
        line = lines[int(number) - 1].replace('"', "").lstrip("[").split("]")[0].split("=")[0].strip()
        table, key = re.match(r"(?:\[+([\w.]+)\]+(?: \d+:)?(?: of patterns)? ?)?(?:`([^`]+)`)?", rest).groups()
        names = [name for name in (table, key) if name is not None]
        assert line in {*names, *(name.rpartition(".")[2] for name in names)}, (mistake, line)
    return plain
