"""Analysis: tables -> findings. Pure: rows in, rows and sentences out."""
