"""The five papers' algorithms, one folder each: the matcher, its rivals, and what had to be corrected.

Nothing of the product imports these packages; `td.Matcher(kind=...)` finds them by name through `matcher.registry`.
"""
