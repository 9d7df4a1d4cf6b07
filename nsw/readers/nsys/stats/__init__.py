"""nsys stats: tables of any layout."""
