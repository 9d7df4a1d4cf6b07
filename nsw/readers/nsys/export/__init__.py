"""nsys export: SQLite, Parquet and Arrow, and the reports it is made from."""
