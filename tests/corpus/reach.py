"""What each matcher can express, told apart from its own code: what is within reach is taken, all else refused."""

from tidings.model import And, Exists, In, Is, IsA, Kind, Not, Or, Quantifier, Range, Test

COMPLETE = {"evaluate", "engine", "brute", "counting", "forest", "poset", "candidates-tree"}
"""These take every filter."""

RANGES = {"hem", "rein", "tama", "htree"}
CONCEPTS = {"ctps", "g-topss", "mic", "ops"}


def reaches(kind, tree):
    """Tell whether a matcher of this kind takes the filter."""
    if kind in COMPLETE:
        return True
    match tree:
        case And(parts) | Or(parts):
            return all(reaches(kind, part) for part in parts)
        case Not():
            return False
        case Test() if kind == "filter-tree":
            return True
        case Test(_, condition, quantifier):
            return quantifier is Quantifier.ANY and WITHIN[kind](condition)


def has_numbers_alone(condition):
    return isinstance(condition, Exists) or (
        isinstance(condition, Is | In | Range) and condition.kind in (Kind.NUMBER, Kind.TIME)
    )


def has_ranges_alone(condition):
    return has_numbers_alone(condition) and all(value is None or is_exact(value) for value in list_values(condition))


def has_concepts_alone(condition):
    named = isinstance(condition, Is | In) and condition.kind in (Kind.TEXT, Kind.BOOL)
    return named or isinstance(condition, IsA) or has_numbers_alone(condition)


def list_values(condition):
    match condition:
        case Is(value):
            return (value,)
        case In(several):
            return several
        case Range(low, high):
            return (low, high)
    return ()


def is_exact(value):
    return not isinstance(value, int) or int(float(value)) == value


WITHIN = {**dict.fromkeys(RANGES, has_ranges_alone), **dict.fromkeys(CONCEPTS, has_concepts_alone)}
