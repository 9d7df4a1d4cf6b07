"""A broken sites file stops only the commands that choose a site."""

import os

import pytest

NEEDS_NO_SITE = [
    ("ls",), ("status",), ("status", "--runs", "--json"), ("summarize",), ("problems",), ("logs", "case.baseline.r1"),
    ("watch", "--once"), ("cancel",), ("resume",), ("retry",), ("reread",), ("throttle", "2"), ("fetch", "--yes"),
    ("schema", "sites"), ("metrics", "ls"), ("init", "--from", "cpu_quickstart", "--output", "new.yaml"), ("--version",),
]  # fmt: skip


@pytest.mark.parametrize("what", ["yaml", "key", "fifo"])
def test_commands_that_choose_no_site_do_not_read_it(good, home, nsw, what):
    sites = home / "sites.yaml"
    sites.unlink()
    if what == "fifo":
        os.mkfifo(sites)
    else:
        sites.write_text(
            {"yaml": "nsw: 1\nsites: {here: {\n", "key": "nsw: 1\nsites: {here: {sheduler: none}}\n"}[what]
        )
    for words in NEEDS_NO_SITE:
        said = nsw(*words, exits=0)
        assert "sites.yaml" not in said.err, words
    for words in (("sites",), ("plan", "new.yaml"), ("plan", "new.yaml", "--site", "local")):
        said = nsw(*words, exits=2)
        assert "sites.yaml:" in said.err, words
