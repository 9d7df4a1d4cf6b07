"""TAU: Tuning and Analysis Utilities."""
