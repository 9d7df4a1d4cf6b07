"""Text as users have it: lines pasted anywhere, numbers with any marks and units."""
