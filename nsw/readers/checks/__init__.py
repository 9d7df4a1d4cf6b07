"""What no report can hold, whichever reader read it."""
