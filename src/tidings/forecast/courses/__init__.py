"""Courses: the cells a pattern may be in, and how events move it from one to the next."""
