"""What matchers of several papers share: intervals, lists of rows, the order of names."""
