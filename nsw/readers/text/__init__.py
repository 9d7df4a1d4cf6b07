"""Text as jobs print it: lines, and numbers with any marks and units."""
