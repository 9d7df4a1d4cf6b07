"""nvprof's text and CSV."""
