from tests.cli.conftest import home, nsw, recipe  # noqa: F401  fixtures
