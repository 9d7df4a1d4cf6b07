"""Campaign: durable state, the loop that drives it, and a module for each thing that one can ask of it.

It prints nothing. Both doors call it: `nsw/cli` for the command line and `nsw/api` for Python.
"""
