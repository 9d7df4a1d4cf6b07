"""Transport: run a command on a site, move files; a file per way."""
