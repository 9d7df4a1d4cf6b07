"""nvprof -o FILE: a SQLite database."""
