"""Campaign: durable state and the loop that drives it."""
