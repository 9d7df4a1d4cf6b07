"""Intel's Application Performance Snapshot: the text of `aps --report`, tables of `aps-report`, and the HTML report.

The text is a summary of metrics that stand below each other, with remarks behind `|`. A table has a row a rank, or a
row a metric and rank. The HTML report is a page whose figures are one JSON object in its script.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from nsw.readers.host.intel_figures import IntelSummary, is_known_metric, metric_facts, names_by_content
from nsw.readers.model import Options, Report, Sample, read_text
from nsw.readers.text.lines import delimited_cells, lines_by_rank, spaced_cells, text_lines
from nsw.readers.text.quantities import parse_integer
from nsw.tables import Row

__all__ = ["read", "sniff"]


_BEGIN: Final = "| Summary information"
_HEAD: Final = ("HW Platform", "Used statistics", "Collector type", "Elapsed Time:", "Elapsed time:")
_END: Final = re.compile(r"Graphical representation|\$ |Intel\(R\) VTune")
_METRIC: Final = re.compile(r"( *)(\S[^|:]*): *(\S.*)\Z")
_SECTION: Final = re.compile(r"( +)([A-Z][\w /()%.-]{1,60}):?\Z")
_METRICS: Final = re.compile(r"\W{0,9}Metric Name\W+Node Name\W.*\bMetric Value\b")
_RANKS: Final = re.compile(r"[|\s\"]*Rank\W+LifeTime\(sec\)")
_DELIMITERS: Final = (";", "\t", ",")
_PAGE: Final = re.compile(r"<title>\s*(?:APS|Application Performance Snapshot|MPI Performance Snapshot)", re.IGNORECASE)
_JSON: Final = re.compile(r"\bvar\s+json\s*=\s*(?=\{)")
_NO_FIGURES: Final = "a page of APS in which no figures were found"
_TEXT: Final = "aps --report=RESULT prints them as text"

# states of the GPU's engines (Xe vector engines, execution units before), which share all time among them
_STATE: Final = re.compile(r"(?:gpu_)?(?:xve|eu)_state_(active|stalled|idle)_pct")
_GPU_SHARES: Final = frozenset({"gpu_busy_pct", "gpu_occupancy_pct"})
_CORE_SHARES: Final = {"physical_core_use_pct": "Physical Core Utilization", "cpu_use_pct": "CPU Utilization"}
_MOST_PCT: Final = 101.0  # of shares that are rounded

# Metric of the page -> its name in the text, where that is not the same in words.
_OF_PAGE: Final = names_by_content("page")
_PARTS: Final = ("_AVG", "_MAX", "CPU_USE", "CORE_USE", "OUT_OF")  # said of a rank, or in two parts
_OUT_OF: Final = (
    ("Average CPU Utilization", "AVERAGE_CPU_USE", "CPU_OUT_OF"),
    ("Average Physical Core Utilization", "PH_CORE_USE", "PH_CORE_OUT_OF"),
)


def sniff(sample: Sample) -> int:
    """By the page's title and script; of text by the first line of a summary, or the titles of a table."""
    text = sample.text
    if sample.is_binary:
        return 0
    if text.lstrip()[:1] == "<":
        return 95 if _PAGE.search(text) and _JSON.search(text) else 0
    if _BEGIN in text and any(word in text for word in _HEAD):
        return 92 if text.lstrip().startswith(_BEGIN) else 80  # it may be amid the output of a job
    if any(_METRICS.match(line) or _RANKS.match(line) for line in text.splitlines()):
        return 80
    return 60 if sample.contains(_BEGIN) else 0


def read(path: Path, options: Options) -> Report:
    """Fill `facts`, a block a summary or table."""
    report = Report(str(path), tool="aps", format="aps")
    facts = _read_html_facts(path, report) if Sample(path).text.lstrip()[:1] == "<" else _read_text_facts(path, report)
    facts = _drop_contradicted_gpu_shares(facts, report)
    if options.wants("facts") and facts:
        report.tables["facts"] = facts
    return report


def _drop_contradicted_gpu_shares(facts: Sequence[Row], report: Report) -> list[Row]:
    """The facts without the GPU's shares where the states of its engines add up to more than all time."""
    by_source: dict[tuple[Any, ...], dict[str, float]] = {}
    for fact in facts:
        if (state := _STATE.fullmatch(fact["key"])) is not None:
            source = (fact["block"], fact.get("rank"), fact.get("host"))
            by_source.setdefault(source, {})[state[1]] = fact["value"]
    shares = max(by_source.values(), key=lambda states: sum(states.values()), default={})
    total = sum(shares.values())
    if total <= _MOST_PCT:
        return list(facts)
    excess = [
        f", and the report has {title} {fact['value']:.0f} %"
        for fact in facts
        if (title := _CORE_SHARES.get(fact["key"])) and fact["value"] > _MOST_PCT
    ]
    report.warn(
        f"the states of the GPU's engines add up to {total:.0f} %"
        f" ({', '.join(f'{state} {share:.0f} %' for state, share in shares.items())}){''.join(excess)}: hardware events"
        " are counted more than once. GPU utilization and occupancy are left out",
        fix="trust times (GPU Accumulated Time, MPI Time) only, or measure again with another version of APS",
    )
    return [fact for fact in facts if fact["key"] not in _GPU_SHARES]


def _read_text_facts(path: Path, report: Report) -> list[Row]:
    blocks: list[_Summary | _Table] = []
    for rank, lines in lines_by_rank(text_lines(path)):
        block: _Summary | _Table | None = None
        for number, text in lines:
            new_block = _block_beginning_at(text, {"block": len(blocks), "rank": rank})
            if new_block is not None:
                block = new_block
                blocks.append(block)
            elif block is not None and not block.accept_line(text):
                # in a summary what is no metric is a remark; a table ends with the first line that is none of its rows
                if isinstance(block, _Table) and block.is_damaged_row(text):
                    report.error("a row of a table is cut short or damaged and is left out", line=number, fix=_TEXT)
                elif isinstance(block, _Table) or _END.match(text):
                    block = None
    return [fact for block in blocks for fact in block.facts]


def _block_beginning_at(line: str, origin: Row) -> _Summary | _Table | None:
    if line.startswith(_BEGIN):
        return _Summary(origin)
    for first_line, row_facts, needed in (
        (_METRICS, _metric_row_facts, {"Metric Name", "Node Name", "Metric Value"}),
        (_RANKS, _rank_row_facts, {"Rank"}),
    ):
        if first_line.match(line):
            table = _Table(line, origin, row_facts)
            return table if needed <= set(table.titles) else None
    return None


class _Summary(IntelSummary):
    """The summary: metrics below each other by their blanks."""

    def accept_line(self, text: str) -> bool:
        """Take a line; False where it is none of the summary's."""
        match, section = _METRIC.match(text), _SECTION.match(text)
        if match is not None and (match[1] or is_known_metric(match[2])):
            self.add_metric(self.enter_metric(len(match[1]), match[2].rstrip()), match[3])
        elif section is not None:
            self.enter_metric(len(section[1]), section[2])
        else:
            return False
        return True


class _Table:
    """A table: blanks between the cells, or a delimiter."""

    def __init__(self, titles: str, origin: Row, row_facts: Callable[[Mapping[str, str]], list[Row] | None]) -> None:
        self.facts: list[Row] = []
        self._origin = origin
        self._row_facts = row_facts
        self._delimiter = next((mark for mark in _DELIMITERS if mark in titles), None)
        self.titles = self._split_cells(titles)

    def _split_cells(self, text: str) -> list[str]:
        text = text.strip().lstrip("| ")
        if self._delimiter is None:
            return spaced_cells(text)
        cells = delimited_cells(text, self._delimiter) or text.split(self._delimiter)
        return [cell.strip() for cell in cells]

    def accept_line(self, text: str) -> bool:
        """Take a line; False where it is none of the table's."""
        if not text.strip() or text.startswith("|"):  # a rule, a total
            return True
        cells = self._split_cells(text)
        facts = self._row_facts(dict(zip(self.titles, cells, strict=True))) if len(cells) == len(self.titles) else None
        self.facts += [self._origin | fact for fact in facts or ()]
        return facts is not None

    def is_damaged_row(self, text: str) -> bool:
        """Whether a line that was not taken is a damaged row."""
        return len(self._split_cells(text)) >= len(self.titles) // 2


def _rank_row_facts(row: Mapping[str, str]) -> list[Row] | None:
    """The facts of a row of `MPI Time per Rank`: a row a rank, a column a metric; None: it is none."""
    rank = parse_integer(row["Rank"])
    figures = [fact for title, cell in row.items() if title != "Rank" for fact in metric_facts((title,), cell)]
    return None if rank is None or not figures else [fact | {"rank": rank} for fact in figures]


def _metric_row_facts(row: Mapping[str, str]) -> list[Row] | None:
    """The facts of a row of `Metric Table`: a metric of a rank, or of a node; those of single devices are left out."""
    name, _, unit = row["Metric Name"].rpartition(", ")
    figures = metric_facts((name or unit,), f"{row['Metric Value']} {unit if name else ''}".strip())
    if not figures and not row["Metric Value"].startswith("N/A"):
        return None
    rank = parse_integer(row.get("Rank", ""))
    origin = {"host": row.get("Node Name")} | ({} if rank is None else {"rank": rank})
    return [fact | origin for fact in figures] if row.get("Device Type", "N/A") == "N/A" else []


def _read_html_facts(path: Path, report: Report) -> list[Row]:
    text = read_text(path)
    match = _JSON.search(text)
    try:
        page = json.JSONDecoder().raw_decode(text, match.end())[0] if match else {}
    except (ValueError, RecursionError):
        page = {}
    summary = IntelSummary({"block": 0})
    for path_, value in _metrics_of_page(page):
        summary.add_metric(path_, value)
    if not summary.facts:
        report.error(_NO_FIGURES, fix=_TEXT)
    return summary.facts


def _metrics_of_page(page: Mapping[str, Any]) -> list[tuple[Sequence[str], str]]:
    """Names and values of a page as the text has them."""
    flat = {name: group for name, group in page.items() if isinstance(group, dict)}
    values = {key: value.strip() for group in flat.values() for key, value in group.items() if isinstance(value, str)}
    metrics: list[tuple[Sequence[str], str]] = []
    for key, value in values.items():
        name = key.removesuffix("_VAL").removesuffix("_PERC")
        if key in flat.get("INFO", ()) or (name != key and not name.endswith(_PARTS)):
            metrics.append(((_OF_PAGE.get(name) or name.replace("_", " "),), value))
    named_values = [metric for metric in metrics if not (metric[0] == ("Elapsed Time",) and metric[1].endswith("%"))]
    for name, used, out_of in _OUT_OF:
        if (cores := values.get(f"{used}_VAL")) and (total := values.get(f"{out_of}_VAL")):
            named_values.append(((name,), f"{cores} out of {total}"))
    # shares of the elapsed time
    return named_values + [((f"MPI_{name}",), f"{share}%") for name, share in flat.get("TOP_5", {}).items()]
