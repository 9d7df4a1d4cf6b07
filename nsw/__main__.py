"""`python -m nsw`."""

from nsw.cli.main import main

main()
