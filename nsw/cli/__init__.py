"""cli: the words a user types; parse, call, print. Nothing imports it."""
