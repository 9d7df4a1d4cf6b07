"""Rules: what a case shows, and what to try; `registry` lists them."""
