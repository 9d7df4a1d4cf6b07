"""ncu's pages as text."""
