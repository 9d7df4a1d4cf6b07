"""Present: terminal, CSV, JSON, Parquet. What comes from reports is text here, never markup."""
