"""The answers of recorded campaigns (tests/fixtures/answers), and what they print."""

import gzip
import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nsw.analysis.summary import CampaignData, ReportRequest, summarize
from nsw.present.summary_view import show_summary
from nsw.present.terminal import console

FOLDER = Path(__file__).parents[1] / "fixtures" / "answers"
ASKED = {
    "ills": ReportRequest(figure="steps_per_sec"),
    "stencil": ReportRequest(figure="gpoints", compare="variant", baseline="naive"),
    "amp": ReportRequest(figure="images_per_sec", compare="amp", baseline=False),
}


@dataclass
class Run:
    id: str
    case_id: str
    params: dict[str, Any]
    pass_name: str
    pass_kind: str
    seconds: float | None
    repeat: int = 1
    state: str = "done"
    host: str | None = None


def campaign(name):
    """What was recorded."""
    data = json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
    runs = [Run(**run) for run in data["runs"]]
    return CampaignData(data["campaign"], "local", None, runs, data["tables"], counters=data["counters"])


def answer(name):
    return summarize(campaign(name), ASKED[name])


class Terminal(io.StringIO):
    """One that breaks lines."""

    def isatty(self):
        return True


def screen(summary, monkeypatch, *, full=False, columns=100, lines=60):
    """The lines of an answer on a terminal."""
    for name, value in (("COLUMNS", str(columns)), ("LINES", str(lines)), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    stream = Terminal()
    show_summary(console(stream), summary, full=full, next_command="`nsw summarize --full` has all tables")
    return [re.sub(r"\x1b\[[\d;]*m", "", line).rstrip() for line in stream.getvalue().splitlines()]
