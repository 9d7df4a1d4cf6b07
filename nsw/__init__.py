"""nsw: GPU profiling campaigns on clusters, from a recipe to an answer with evidence."""

__version__ = "0.1.0"
