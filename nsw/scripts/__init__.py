"""Scripts: Jinja over templates/ -> script text."""
