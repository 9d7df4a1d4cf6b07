"""Schedulers: a file per scheduler; submit, poll, cancel, explain."""
