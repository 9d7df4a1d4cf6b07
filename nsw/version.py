"""The version of nsw, in a module that imports nothing."""

__all__ = ["__version__"]

__version__ = "0.2.0"
