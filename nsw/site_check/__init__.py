"""Whether a site can carry out campaigns, what is known of it, and a first description of it."""
