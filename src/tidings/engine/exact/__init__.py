"""What no interval of codes decides: places, Boolean trees, text automata, and the law itself, asked of survivors."""
