"""Reports of Python's own profilers."""
