"""What `nsw sites check` prints keeps its columns on a narrow terminal."""

from nsw.cli.planning import show_check
from nsw.site_check.check import Check, Verdict


def test_long_texts_go_on_in_their_own_column(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    found = "the site says gh100, and its node has NVIDIA A100-SXM4-40GB, NVIDIA H100 80GB HBM3"
    show_check(Check("chip", Verdict.WARNING, found, "correct gpus.chip; " * 5))
    first, *more = capsys.readouterr().out.splitlines()
    assert first.startswith("warning  chip            the site says")
    assert len(more) >= 2
    assert all(line.startswith(" " * 25) and line[25] != " " and len(line) <= 80 for line in more)
