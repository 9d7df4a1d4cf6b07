"""Write docs/formats.md and docs/tables.md: `python tools/formats_page.py [--check]`.

The formats are those of nsw/readers/data/formats.toml, the tables those of nsw/tables/schema.csv and of summaries.
"""

from __future__ import annotations

import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from nsw.analysis.kernels import KernelRow
from nsw.present.emit import FLAT, flat_kernels
from nsw.readers.nsys.stats.reports import REPORTS, TABLES, unread_reason
from nsw.readers.registry import FORMATS, Format
from nsw.tables.schema import TABLES as SCHEMA
from nsw.tables.schema import TRACES

DOCS = Path(__file__).parents[1] / "docs"
_HEAD = """# Report formats that nsw reads

<!-- made by tools/formats_page.py from nsw/readers/data/formats.toml: change it there -->

The formats that `nsw read` reads, their versions, what nsw does not read, and the fixture or test (below `tests/`) that
proves it. nsw recognises a file by its content, not by its name. If it cannot read a file, or a part of it, nsw reports
why as a problem beside the tables. [tables.md](tables.md) lists the tables.

nsw also reads a file of any format that is packed with gzip or xz, from a copy below TMPDIR that it then removes. For
archives and other packers it prints the command that unpacks them.

A packed file may unpack to fifty times its size, and at least to 256 MiB. nsw refuses larger ones;
`nsw read --max-unpacked 20G` raises the limit. Memory and time of reading have limits too ([security.md](security.md));
`--max-memory 64G` and `--max-time 5h` raise them.

## Damaged reports

Rows that break an invariant are left out and reported (`nsw/readers/invariants.py`): negative times, times of more than
ten years, a mean outside the least and the greatest, a total below the greatest, shares above 100 %, one ID for two
kernels. Figures in an unknown unit, with another decimal mark than the rest of the file or under damaged titles are
absent and reported.

Other damage is not found: a figure, a name or a text that is wrong in the file is read as it stands, and a row that is
there twice counts twice.
"""

_TABLES_HEAD = """# Tables: what each holds, as CSV (Excel) and as pandas frames

<!-- made by tools/formats_page.py from nsw/tables/schema.csv: change it there -->

```sh
nsw summarize --table hotspots                                # rows on the terminal; any table below but traces
nsw summarize --table hotspots --format csv > hotspots.csv    # as CSV; `-o hotspots.csv` too
nsw export --csv FOLDER                                       # all tables but traces, a file each; --parquet, --sqlite
```

```python
import nsw

campaign = nsw.open()  # the newest; nsw.open("campaigns/NAME")
campaign.answers.hotspots  # the tables of answers
summary = campaign.tables.gpu_summary  # the tables of reports and traces
kernels = summary[summary["kind"] == "kernel"]
```

**Which table has the kernels?** `hotspots`: those that cost most, with their share of a case. `gpu_summary`: all of
them, a row a run and kernel, with copies and sets; `kind` is `kernel`, `memcpy`, `memset`, `um` (unified memory) or
`graph` (a CUDA graph traced as a whole). `kernels`: those whose hardware counters were measured (a pass `counters`).
`gpu_trace`: every launch.

Excel opens the CSV files; nsw writes no .xlsx. `nsw read FILE... --table NAME` prints a table of a report without a
campaign, and takes `--where kind=kernel`.
`nsw query` filters in SQL ([howto/sql.md](howto/sql.md)). `nsw query --schema` lists the columns with units and
meanings; so does `nsw/tables/schema.csv`. Times are ns, sizes bytes, percentages 0 to 100; what was not measured is
null.
"""
_ANSWERS: dict[str, str] = {  # what a summary makes of the tables of reports
    "scaling": "the curve of `report.scaling`: one row a point, with speed-up and efficiency",
    "compare": "the variants of `report.compare`, one row each, with ratio and range",
    "hotspots": "the kernels and copies that cost most, by case",
    "kernels": "kernels with hardware counters (a pass `counters`), by case",
    "roofline": "the points of the roofline: one row a kernel, level of memory and precision",
    "api": "the CUDA calls that cost most, by case",
    "copies": "copies by direction, with bytes and bandwidth, by case",
    "figures": "what the program printed, by case and pass: median, mean, standard deviation, least, most",
    "functions": "the functions that cost most on CPUs (a pass `host`), by case",
    "model": "effective rates of `report.model`, by case",
    "perturbation": "how much each profiler slowed the program down, by case and pass",
    "iteration_times": "iterations with their times, set-up and warm-up, a row a case",
    "stragglers": "ranks that others wait for, by case",
}
_KERNELS: dict[str, str] = {  # the columns of table kernels beside the parameters and the metrics
    "name, short_name": "the kernel as printed, and its function's own name",
    "launches, measured": "launches in the timeline, else with counters; launches with counters",
    "time_ns, time_from, share_pct": "time of all launches, by `timeline` or `counters`; share of all kernels' time",
    "sm_pct, memory_pct": "the busiest part of the SMs, of memory and caches, of its peak",
    "dram_bytes_per_s, dram_pct": "DRAM throughput, and what it is of the peak",
    "achieved_occupancy_pct": "active warps, of the most that an SM holds",
    "theoretical_occupancy_pct": "the most that registers, shared memory and grid allow",
    "occupancy_limiter": "what limits the theoretical occupancy",
    "registers, shared_memory_bytes": "registers a thread, shared memory a block",
    "tensor_pct": "how busy the tensor cores are",
    "stall_1, stall_1_pct, stall_2, stall_2_pct": "what warps wait for most, and the share of active warps that do",
    "roof, roof_share_pct": "the roof above the kernel, and how near it is to it",
    "advice, advice_speedup_pct": "the rule of Nsight Compute that saves most, and its estimate",
    "shape": "grid and block",
    "device_name, program_bytes": "the GPU; the most memory of it that the program held, by samples beside a run",
    "source": "what ncu's source page shows, where there is one",
}
_RUNS = "one row a run: parameters, state, reason, times, job id"


def tables_page() -> str:
    """The page of tables as it should be."""
    if set(_ANSWERS) != set(FLAT):
        sys.exit(f"tables of summaries without a meaning, or gone: {set(_ANSWERS) ^ set(FLAT)}")
    of_runs = {name: table.meaning for name, table in SCHEMA.items() if name not in TRACES}
    traces = {name: SCHEMA[name].meaning for name in SCHEMA if name in TRACES}
    return "\n".join([
        _TABLES_HEAD,
        "## Tables of answers",
        "",
        *_list_of({"runs": _RUNS, **_ANSWERS}),
        "",
        "`figures` and `functions` are also tables of reports, a row a run: `campaign.tables.figures` in Python.",
        "",
        "## Columns of table kernels",
        "",
        "`case` and the parameters come first. Last comes a column for each metric that was measured or computed, by",
        "its [portable name](metric-names.md). Rates and shares are weighted by launch time, amounts are means.",
        "",
        *_columns_of_kernels(),
        "",
        "## Tables of reports",
        "",
        *_list_of(of_runs),
        "",
        "## Traces",
        "",
        "One row an event; not stored with a campaign. `campaign.tables.gpu_trace` in Python reads it from the",
        "reports, and so does `nsw read campaigns/NAME/reports/RUN/* --table gpu_trace`.",
        "",
        *_list_of(traces),
        "",
    ])  # fmt: skip


def _list_of(meanings: dict[str, str]) -> list[str]:
    return ["| table | what it holds |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in meanings.items())]


def _columns_of_kernels() -> list[str]:
    empty: dict[str, Any] = {f.name: None for f in fields(KernelRow) if MISSING is f.default is f.default_factory}
    (row,) = flat_kernels([KernelRow(**empty | {"shapes": (), "stalls": ()})])
    listed = {name for names in _KERNELS for name in names.split(", ")}
    if listed != set(row):
        sys.exit(f"columns of table kernels without a meaning, or gone: {listed ^ set(row)}")
    rows = (f"| {', '.join(f'`{name}`' for name in names.split(', '))} | {text} |" for names, text in _KERNELS.items())
    return ["| columns | what they hold |", "|---|---|", *rows]


def page() -> str:
    """The page of formats as it should be."""
    rows = [f"| [{f.id}](#{f.id}) | {f.tool} | {f.meaning} |" for f in FORMATS]
    index = "\n".join(["| format | tool | what it is |", "|---|---|---|", *rows])
    return "\n".join([_HEAD, index, *(_section(f) for f in FORMATS)])


def _section(format_: Format) -> str:
    proofs = ", ".join(f"[{p}](../tests/{p})" for p in format_.proofs)
    return f"""
## {format_.id}

- What: {format_.meaning}{" (a folder)" if format_.folder else ""}
- Versions: {format_.versions}
- Read: {", ".join(format_.tables)}
- Not read: {format_.unread}
- Proof: {proofs}
{_nsys_reports() if format_.id == "nsys-stats" else ""}"""


def _nsys_reports() -> str:
    """What becomes of each report of `nsys stats`, by its names until 2022 and since."""
    groups: dict[str, list[str]] = {}
    for name, kind in REPORTS.items():
        meaning = TABLES.get(kind) or f"not read: {unread_reason(name).reason}"
        groups.setdefault(meaning, []).append(f"`{name}`")
    rows = [f"| {', '.join(names)} | {meaning} |" for meaning, names in groups.items()]
    return "\n" + "\n".join(["| report of nsys stats | becomes |", "|---|---|", *rows]) + "\n"


def main() -> None:
    """Write the pages, or with --check only say whether they are current."""
    for name, text in (("formats.md", page()), ("tables.md", tables_page())):
        path = DOCS / name
        if "--check" not in sys.argv[1:]:
            path.write_text(text)
        elif path.read_text() != text:
            sys.exit(f"{path} is not current: python tools/formats_page.py")


if __name__ == "__main__":
    main()
