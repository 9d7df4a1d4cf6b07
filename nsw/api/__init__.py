"""nsw from Python: what `nsw.run`, `nsw.open`, `nsw.read` and their like are. Import them from `nsw` itself."""
