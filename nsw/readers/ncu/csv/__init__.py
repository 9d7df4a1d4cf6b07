"""ncu --csv."""
