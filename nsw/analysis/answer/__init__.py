"""The answer of a campaign in blocks: a file an analysis, a line for each in `registry.py`."""
