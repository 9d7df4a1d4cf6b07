"""Recipes: YAML to a typed recipe and its cases; every fault with its place and the offending text."""
