"""gprof's text: the flat profile, and the call graph, which adds the time of callees and recursive calls."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from nsw.readers.model import Options, Report, Sample
from nsw.readers.text.lines import text_lines
from nsw.readers.text.quantities import Quantity, number
from nsw.tables import Row

__all__ = ["read", "sniff"]


_FLAT: Final = re.compile(r" time   seconds   seconds ")
_GRAPH: Final = re.compile(r"index % time {1,8}self  children {1,8}called {1,8}name")
# %TIME CUMULATIVE SELF [CALLS SELF/CALL TOTAL/CALL] NAME
_ROW: Final = re.compile(
    r" {0,6}(\d{1,3}\.\d\d) {1,12}(\d{1,12}\.\d\d) {1,12}(\d{1,12}\.\d\d) {1,60}"
    r"(?:(\d{1,18}) {1,12}\d{1,12}\.\d\d {1,12}\d{1,12}\.\d\d {1,8})?([^\s\d].*)"
)
# [INDEX] %TIME SELF CHILDREN [CALLED[+RECURSIVE]] NAME [<cycle N>] [INDEX]; gprof cuts the first to six characters
_ENTRY: Final = re.compile(
    r"\[(\d{1,9})\]? {1,10}(\d{1,3}\.\d) {1,12}(\d{1,12}\.\d\d) {1,12}(\d{1,12}\.\d\d) {1,60}"
    r"(?:(\d{1,18})(?:\+(\d{1,18}))? {1,12})?([^\s\d].{0,20000}) \[(\d{1,9})\]\s{0,4}\Z"
)
_CYCLE: Final = re.compile(r" <cycle \d{1,9}>\Z")
_EACH: Final = re.compile(r"Each sample counts as (\d{1,9}(?:\.\d{1,9})?(?:e-\d\d)?) seconds")
_GRANULARITY: Final = re.compile(r"granularity: .{1,100} of (\d{1,12}\.\d\d) seconds")
_NO_TIME: Final = "no time accumulated"
_LEGEND: Final = re.compile(r"\s{0,4}% {1,12}the percentage of")


class _CallGraphEntry(NamedTuple):
    """What the call graph says of a function, with its callees' time."""

    own_time: Quantity
    children: Quantity
    call_count: int | None
    recursive: int

    @property
    def function_columns(self) -> Row:
        total = self.own_time.value + self.children.value
        row: Row = {"cpu_time_s": total, "cpu_time_s_pm": (self.own_time.pm or 0) + (self.children.pm or 0)}
        if self.call_count is not None:
            row |= {"calls": self.call_count + self.recursive, "primitive_calls": self.call_count}
        return row


def sniff(sample: Sample) -> int:
    """Certain by the titles of either part."""
    return 95 if _FLAT.search(sample.text) or _GRAPH.search(sample.text) else 0


def read(path: Path, options: Options) -> Report:
    """Fill `functions`, in the order of the flat profile, and `facts`."""
    report = Report(str(path), tool="gprof", format="gprof")
    rows: list[Row] = []
    graph: list[tuple[str, _CallGraphEntry]] = []
    facts: dict[str, float] = {}
    bad: list[int] = []
    part = ""
    for line, text in text_lines(path):
        if _FLAT.match(text):
            part = "flat"
        elif _GRAPH.match(text):
            part = "graph"
        elif part == "flat" and (not text.strip() or _LEGEND.match(text)):
            part = "after" if rows or text.strip() else part
        elif part == "flat" and _NO_TIME not in text:
            _add_flat_profile_row(rows, text, bad, line)
        elif part == "graph" and text.startswith("["):
            _add_call_graph_entry(graph, text, bad, line)
        elif match := _EACH.match(text):
            facts["sampling_hz"] = 1 / float(match[1]) if float(match[1]) else 0.0
        elif match := _GRANULARITY.match(text):
            facts["cpu_time_s"] = float(match[1])
    wrong = "a row that does not have gprof's columns was left out"
    report.errors([wrong] * len(bad), f"{len(bad)} rows in all were left out", lines=bad)
    if not rows and not graph and not bad:
        report.error(
            "the profile is empty: no sample hit a function, and no call was counted",
            fix="run the program longer than some samples of 0.01 s take, and compile all of it with -pg",
        )
    if options.wants("functions"):
        report.tables["functions"] = list(_add_call_graph_to_rows(rows, graph, report))
    if options.wants("facts"):
        report.tables["facts"] = [
            {"key": key, "value": value, "unit": "Hz" if key.endswith("_hz") else "s"} for key, value in facts.items()
        ]
    return report


def _add_flat_profile_row(rows: list[Row], text: str, bad_lines: list[int], line: int) -> None:
    match = _ROW.fullmatch(text.rstrip())
    share, own_seconds = (number(match[1]), number(match[3])) if match else (None, None)
    if match is None or share is None or own_seconds is None:
        bad_lines.append(line)
        return
    row: Row = {"name": match[5], "self_s": own_seconds.value, "self_s_pm": own_seconds.pm}
    row |= {"self_pct": share.value, "self_pct_pm": share.pm}
    rows.append(row | ({"primitive_calls": int(match[4])} if match[4] else {}))  # the graph has recursive ones too


def _add_call_graph_entry(graph: list[tuple[str, _CallGraphEntry]], text: str, bad_lines: list[int], line: int) -> None:
    match = _ENTRY.match(text)
    own_time, children = (number(match[3]), number(match[4])) if match else (None, None)
    if match is None or own_time is None or children is None or not match[8].startswith(match[1]):
        bad_lines.append(line)
    elif not match[7].startswith("<cycle "):  # the sum of functions that call each other
        call_count = int(match[5]) if match[5] else None
        graph.append((_CYCLE.sub("", match[7]), _CallGraphEntry(own_time, children, call_count, int(match[6] or 0))))


def _add_call_graph_to_rows(
    rows: Iterable[Row], graph: list[tuple[str, _CallGraphEntry]], report: Report
) -> Iterable[Row]:
    """The rows with what the call graph adds; functions of one name cannot be told apart there."""
    several = Counter(name for name, _ in graph)
    entries: Mapping[str, _CallGraphEntry] = {name: entry for name, entry in graph if several[name] == 1}
    names = set()
    for row in rows:
        names.add(row["name"])
        yield row | (entries[row["name"]].function_columns if row["name"] in entries else {})
    for name, entry in graph:
        if name not in names:
            yield {
                "name": name,
                "self_s": entry.own_time.value,
                "self_s_pm": entry.own_time.pm,
                **entry.function_columns,
            }
    if alike := sorted(name for name, count in several.items() if count > 1):
        report.warn(f"the time with callees is not known of functions with the same name: {', '.join(alike[:5])}")
