"""What the commands do, without a terminal: plan, start, drive and read campaigns. It prints nothing.

Both doors use it: `nsw/cli` for the command line and `nsw/api` for Python.
"""
