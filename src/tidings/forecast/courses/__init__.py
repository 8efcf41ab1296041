"""Courses: the cells a pattern may stand in, and how events move it from one to the next."""
