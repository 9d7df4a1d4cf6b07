"""Score what nsw says first of each recording against what it shows: `make diagnosis`.

    python bench/diagnosis/score.py [--held-out] [--part PART] [--cases] [--read] [--renamed SEED]
                                    [--metrics NAMES] [--only ID...] [--keep]

Case by case for the open part; of the held-out part the totals alone, and only with --held-out. --part scores
another one instead: its totals, and with --cases its cases. A case is

    named    the first finding is its cause, with a remedy that acts on it
    half     the first finding is its cause without such a remedy, or a later one is its cause
    silent   there is no finding
    wrong    there are findings, and none is its cause
    quiet    it is healthy, and no finding asks for a change
    blamed   it is healthy, and one does

The cause is told by the id of a finding where causes.md has that id, else by the words of its sentence (truth.yaml).
The estimated gain is right within a factor of 1.5 of the measured one, and too large above twice it.
"""

from __future__ import annotations

import argparse
import bisect
import contextlib
import csv
import io
import json
import random
import re
import sqlite3
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

import recordings  # noqa: E402  beside this file
from record import COUNTED, STEPS  # noqa: E402

NAMED = HERE / "named.txt"
GROUPS = {
    "k": "kernels",
    "h": "kernels",
    "t": "timeline",
    "g": "timeline",
    "m": "two GPUs",
    "d": "two GPUs",
}
VERDICTS = ("named", "half", "silent", "wrong", "quiet", "blamed")
_TOLERANCE, _TOO_LARGE = 1.5, 2.0
_RARE = ("launch__", "device__", "nvlink__")  # columns that ncu gives with any metrics


@dataclass(frozen=True, slots=True)
class Score:
    """What was said of a case, and how right it is; gains are shares of the case's time."""

    id: str
    group: str
    cause: str
    verdict: str
    changed: bool
    said: tuple[str, ...]
    rules: tuple[str, ...]
    estimated: float | None
    measured: float | None
    iterations: int | None
    steps: int

    @property
    def gain(self) -> str | None:
        """Whether the estimate is right, small, large or too large; None: there are not both."""
        if self.verdict != "named" or not self.measured or self.measured < 0.02 or self.estimated is None:
            return None
        ratio = max(self.estimated, 1e-9) / self.measured
        if ratio > _TOO_LARGE:
            return "too large"
        return "right" if 1 / _TOLERANCE <= ratio <= _TOLERANCE else "large" if ratio > 1 else "small"


@cache
def truth() -> dict[str, Any]:
    """truth.yaml."""
    return yaml.safe_load((HERE / "truth.yaml").read_text())  # type: ignore[no-any-return]


def cases(part: str = "open") -> list[dict[str, Any]]:
    """The cases of a part that were recorded."""
    return [
        case for case in truth()["cases"]
        if case["part"].startswith(part) and any(recordings.FOLDER.glob(f"{case.get('of', case['id'])}.*.xz"))
    ]  # fmt: skip


@cache
def cause_ids() -> frozenset[str]:
    """The ids of causes.md, those of healthy cases included."""
    return frozenset(truth()["causes"]) | frozenset(re.findall(r"`([a-z0-9-]+)`", (HERE / "causes.md").read_text())) | (
        frozenset(re.findall(r"^\| ([a-z0-9-]+) \|", (HERE / "causes.md").read_text(), re.MULTILINE))
    )  # fmt: skip


@cache
def healthy_ids() -> frozenset[str]:
    """The ids that ask for no change."""
    return frozenset(case["healthy"] for case in truth()["cases"] if "healthy" in case) | {"occupancy-enough"}


@cache
def measured_gains() -> dict[str, float]:
    """The share of its time that each case's cure saves."""
    with (HERE / "times.csv").open() as file:
        ms = {row["case"]: float(row["ms"]) for row in csv.DictReader(file)}
    gains = {}
    for case in truth()["cases"]:
        name = case["run"].split(" ", 1)[1]
        if "gain" in case:
            gains[case["id"]] = float(case["gain"])
        elif name in ms and case.get("cured") in ms:
            gains[case["id"]] = 1 - ms[case["cured"]] / case.get("work", 1) / ms[name]
    return gains


@cache
def held_mib() -> dict[str, float]:
    """The most GPU memory that each program of CUDA kernels held, in MiB: what a run's conditions would have."""
    with (HERE / "memory.csv").open() as file:
        return {row["case"]: float(row["mib"]) for row in csv.DictReader(file)}


# --- what nsw says --------------------------------------------------------------------------------------------------


def summary_of(case: dict[str, Any], *, alone: bool = False, seed: int | None = None,
               metrics: frozenset[str] | None = None) -> Any:  # fmt: skip
    """The answer of a case.

    Args:
        case: A row of truth.yaml.
        alone: As `nsw read` of a single report shows it: of kernels the counters; else as a run with both.
        seed: Kernels, ranges and files of the user's get names at random.
        metrics: The counters that are looked at; None: all that were recorded.
    """
    from nsw.analysis.kernels import kernel_table_of_report
    from nsw.analysis.of_reports import LOOKED_AT, ReadReport, runs_and_tables_of_reports, summarize_reports
    from nsw.analysis.summary import CampaignData, ReportRequest, summarize
    from nsw.readers.detect import read
    from nsw.tables.schema import TABLES

    with tempfile.TemporaryDirectory() as folder:
        paths = recordings.unpack(case.get("of", case["id"]), Path(folder))
        if case.get("changed"):
            paths = _CHANGES[case["changed"]](paths, case)
        if seed is not None:
            paths = renamed(paths, seed)
        if metrics is not None and "counters" in paths:
            _keep_metrics(paths["counters"], metrics)
        if alone and len(paths) > 1:
            del paths["timeline"]
        reports = {kind: read(path) for kind, path in paths.items()}
    looked_at = {
        kind: ReadReport("case", {name: report.tables[name] for name in LOOKED_AT if name in report.tables},
                         kernel_table_of_report(report.tables), report.failed)
        for kind, report in reports.items()
    }  # fmt: skip
    if len(looked_at) == 1:
        return summarize_reports("case", list(looked_at.values()))
    runs, tables = runs_and_tables_of_reports([looked_at["timeline"]], {"case": "case"})
    if (held := held_mib().get(case["run"].split(" ", 1)[1])) is not None:
        row = dict.fromkeys(TABLES["conditions"].column_names)
        tables["conditions"] = [
            row | {"run": "case", "start_s": 0.0, "end_s": 10.0, "interval_s": 0.2, "memory_mib": held}
        ]
    kernels = {"case": looked_at["counters"].kernels}
    return summarize(CampaignData("case", "", None, runs, tables, kernels=kernels), ReportRequest())


def findings_of(case: dict[str, Any], **how: Any) -> tuple[list[Any], list[Any], int | None]:
    """The findings of a case in their order, its hits, and how many iterations were found; `how` as in `summary_of`."""
    summary = summary_of(case, **how)
    hits = [hit for group in summary.hits.values() for hit in group]
    iterations = [case.iterations.count for case in summary.cases if case.iterations is not None]
    return list(summary.findings), hits, iterations[0] if iterations else None


def score(case: dict[str, Any], **how: Any) -> Score:
    """Score a case."""
    findings, hits, iterations = findings_of(case, **how)
    ids = [_cause_of(finding) for finding in findings]
    right = [_is_cause(finding, cause_id, case) for finding, cause_id in zip(findings, ids, strict=True)]
    if "healthy" in case:
        asks = [cause_id not in healthy_ids() for cause_id in ids]
        verdict = "blamed" if any(asks) else "quiet"
    elif not findings:
        verdict = "silent"
    elif right[0]:
        verdict = "named" if _has_remedy(findings[0], ids[0] or case["cause"]) else "half"
    else:
        verdict = "half" if any(right) else "wrong"
    estimate = next((hit.gain_pct / 100 for hit in hits if findings and hit.cause == findings[0].name), None)
    return Score(
        case["id"], _group_of(case), case.get("cause") or case["healthy"], verdict, bool(case.get("changed")),
        tuple(finding.text for finding in findings), tuple(finding.name for finding in findings), estimate,
        measured_gains().get(case["id"]), iterations, _steps_of(case),
    )  # fmt: skip


def _group_of(case: dict[str, Any]) -> str:
    is_counted = case["id"] in recordings.counters_by_case(case["id"][0])
    return "kernels" if is_counted else GROUPS.get(case["id"][0], "timeline")


def _steps_of(case: dict[str, Any]) -> int:
    """How many steps the program took while it was traced; fewer are left where the end of a recording is cut off."""
    program = case["run"].split(" ", 1)[0]
    warm = 3 if program in COUNTED else 2 if program == "two" else 0
    return int(case.get("steps", STEPS.get(program, 0))) + warm


def _cause_of(finding: Any) -> str | None:
    cause_id = getattr(finding, "cause", None) or finding.name
    return cause_id if cause_id in cause_ids() else None


def _is_cause(finding: Any, cause_id: str | None, case: dict[str, Any]) -> bool:
    if "healthy" in case:
        return False
    right = {case["cause"], *case.get("also", ())}
    if cause_id is not None:
        return cause_id in right
    return any(_says(finding.text, truth()["causes"][cause]["words"]) for cause in right)


def _has_remedy(finding: Any, cause: str) -> bool:
    return _says(finding.text, truth()["causes"][cause]["remedies"])


def _says(text: str, words: list[str]) -> bool:
    lowered = text.lower()
    return any(word.lower() in lowered for word in words)


# --- other names, other columns --------------------------------------------------------------------------------------


@cache
def _users_names() -> frozenset[str]:
    """The names of kernels and ranges that the sources give."""
    names = {"step"}
    for path in (HERE / "sources").iterdir():
        if path.suffix in {".cu", ".h"}:
            names |= set(
                re.findall(r"__global__ (?:void )?(?:__launch_bounds__\([^)]*\) )?(?:void )?(\w+)\(", path.read_text())
            )
            names |= set(re.findall(r"(?:struct|__noinline__ \w+) (\w+)", path.read_text()))
        elif path.suffix == ".py":
            names |= set(re.findall(r"@triton\.jit\ndef (\w+)\(", path.read_text()))
    return frozenset(names - {"__launch_bounds__"})


def renamed(paths: dict[str, Path], seed: int) -> dict[str, Path]:
    """The reports with names of the user's at random, under another file name."""
    chance = random.Random(seed)
    words = {name: "".join(chance.choices("bcdfghjklmnpqrstvwxz", k=9)) for name in sorted(_users_names())}
    joined = "|".join(sorted(words, key=len, reverse=True))
    mangled, plain = re.compile(rf"(?<!\d)(\d+)({joined})(?=[A-Z]|$)"), re.compile(rf"(?<![\w.:])({joined})(?!\w)")

    def other(text: str) -> str:
        text = mangled.sub(lambda m: f"{len(words[m[2]])}{words[m[2]]}" if int(m[1]) == len(m[2]) else m[0], text)
        return plain.sub(lambda m: words[m[1]], text)

    result = {}
    for kind, path in paths.items():
        result[kind] = path.with_name("".join(chance.choices("abcdefgh", k=8)) + "".join(path.suffixes))
        if kind == "counters":
            header, units, *rows = csv.reader(io.StringIO(path.read_text()))
            at = header.index("Kernel Name")
            rows = [[other(cell) if index == at else cell for index, cell in enumerate(row)] for row in rows]
            _write_page(result[kind], [header, units, *rows])
            continue
        path.rename(result[kind])
        database = sqlite3.connect(result[kind])
        database.create_function("other", 1, lambda text: other(text) if isinstance(text, str) else text)
        database.execute("UPDATE StringIds SET value = other(value)")
        if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'NVTX_EVENTS'").fetchone():
            database.execute("UPDATE NVTX_EVENTS SET text = other(text)")
        database.commit()
        database.close()
    return result


def _write_page(path: Path, rows: list[list[str]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)


def _keep_metrics(page: Path, metrics: frozenset[str]) -> None:
    """Leave out the columns of other metrics."""
    rows = list(csv.reader(io.StringIO(page.read_text())))
    chosen = [index for index, name in enumerate(rows[0])
              if "__" not in name or name in metrics or name.startswith(_RARE)]  # fmt: skip
    _write_page(page, [[row[index] for index in chosen] for row in rows])


def _slow_clock(paths: dict[str, Path], case: dict[str, Any]) -> dict[str, Path]:
    """The counters as at a lower SM clock: times longer, clocks and what DRAM carries a second less."""
    factor = case["factor"]
    header, units, *rows = csv.reader(io.StringIO(paths["counters"].read_text()))
    for index, name in enumerate(header):
        times = 1.0
        if name == "gpu__time_duration.sum":
            times = 1 / factor
        elif name.startswith("dram__throughput") or (name.endswith("per_second") and "dram__cycles" not in name):
            times = factor
        if times != 1.0:
            for row in rows:
                row[index] = f"{float(row[index].replace(',', '')) * times:.6f}" if row[index] else row[index]
    _write_page(paths["counters"], [header, units, *rows])
    return {"counters": paths["counters"]}


def _without_stray(paths: dict[str, Path], _: dict[str, Any]) -> dict[str, Path]:
    """The timeline without contexts that no kernel uses."""
    with contextlib.closing(sqlite3.connect(paths["timeline"])) as database:
        used = (
            "SELECT 1 FROM CUPTI_ACTIVITY_KIND_KERNEL k"
            " WHERE k.globalPid >> 24 & 0xFFFFFF = processId AND k.deviceId = c.deviceId"
        )
        database.execute(f"DELETE FROM TARGET_INFO_CUDA_CONTEXT_INFO AS c WHERE NOT EXISTS ({used})")
        database.commit()
    return paths


def _hot_rank(paths: dict[str, Path], case: dict[str, Any]) -> dict[str, Path]:
    """The timeline of a process whose GPU is slower by a factor: the others wait for it in their collectives.

    An iteration ends with its last collective. In it all of the hot process takes `factor` times as long; of the other,
    the collectives end with those of the hot one, and the rest stays as long as it is.
    """
    _without_stray(paths, case)
    factor, hot = case["factor"], case["process"]
    with contextlib.closing(sqlite3.connect(paths["timeline"])) as database:
        nccl = {row[0] for row in database.execute("SELECT id FROM StringIds WHERE value LIKE 'nccl%'")}
        kernels = database.execute(
            'SELECT start, "end", demangledName, globalPid FROM CUPTI_ACTIVITY_KIND_KERNEL'
        ).fetchall()
        ends = sorted(row[1] for row in kernels if row[2] in nccl and row[3] >> 24 & 0xFFFFFF == hot)
        bounds = [end for end, after in zip(ends, [*ends[1:], 1 << 62], strict=True) if after - end > 5_000_000]
        begins = [0]
        for before, bound in zip([0, *bounds], bounds, strict=False):
            begins.append(begins[-1] + round((bound - before) * (factor if before else 1)))

        def moved(time: int, slower: float) -> int:
            at = bisect.bisect_right(bounds, time)
            return begins[at] + round((time - (bounds[at - 1] if at else 0)) * (slower if at else 1))

        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
            owner = next((name for name in ("globalPid", "globalTid") if name in columns), None)
            if owner is None or not {"start", "end"} <= set(columns):
                continue
            name = "demangledName" if "demangledName" in columns else "NULL"
            rows = database.execute(
                f'SELECT rowid, start, "end", {owner}, {name} FROM "{table}" ORDER BY start'
            ).fetchall()
            last_end, changed = 0, []
            for row, start, end, process, kernel in rows:
                own = process >> 24 & 0xFFFFFF == hot
                begin = moved(start, factor if own else 1)
                stop = None if end is None else moved(end, factor) if own or kernel in nccl else begin + end - start
                if kernel in nccl and not own:  # one after the other
                    begin = max(begin, min(last_end, stop))
                    last_end = stop
                changed.append((begin, stop, row))
            database.executemany(f'UPDATE "{table}" SET start = ?, "end" = ? WHERE rowid = ?', changed)
        database.commit()
    return paths


_CHANGES = {"clock": _slow_clock, "no stray context": _without_stray, "hot rank": _hot_rank}


# --- the report -------------------------------------------------------------------------------------------------------


def metrics_before() -> frozenset[str]:
    """The metrics of the recipe that stood for diagnosis before there was a set for it."""
    from nsw.metrics.requests import ncu_metric_request

    return frozenset(ncu_metric_request(["speed_of_light", "occupancy", "stalls", "roofline", "ipc"]).metrics)


def metrics_named(words: str | None) -> frozenset[str] | None:
    """The metrics of nsw's groups or of ncu; `all` or nothing: all that were recorded."""
    from nsw.metrics.requests import ncu_metric_request

    if words in {None, "all"}:
        return None
    return metrics_before() if words == "before" else frozenset(ncu_metric_request(words.split(",")).metrics)


def _scored(task: tuple[dict[str, Any], dict[str, Any]]) -> Score:
    return score(task[0], **task[1])


def scores_of(chosen: list[dict[str, Any]], processes: int = 2, **how: Any) -> list[Score]:
    """The scores of cases, in their order."""
    tasks = [(case, how) for case in chosen]
    if processes < 2:
        return [_scored(task) for task in tasks]
    with ProcessPoolExecutor(processes) as pool:
        return list(pool.map(_scored, tasks, chunksize=4))


def print_cases(scores: list[Score]) -> None:
    """A line a case."""
    for row in scores:
        gain = "" if row.measured is None else f"{row.measured:.0%}"
        estimate = "" if row.estimated is None else f"{row.estimated:.0%}"
        mark = " (changed columns)" if row.changed else ""
        print(f"{row.verdict:7} {row.id:4} {row.cause:26} gain {estimate:>5} of {gain:>5}"
              f" iterations {row.iterations or '-':>5} of {row.steps:2}  "
              f"{(row.said[0] if row.said else '-')[:130]}{mark}")  # fmt: skip


def print_totals(title: str, scores: list[Score]) -> None:
    """How many of each verdict, by group."""
    print(f"\n{title}")
    print(f"{'':12} {'ill':>4} " + " ".join(f"{word:>7}" for word in VERDICTS[:4]) + f" {'healthy':>8} {'blamed':>7}")
    real = [row for row in scores if not row.changed]
    groups = [*dict.fromkeys(row.group for row in real)]
    parts = [(group, [row for row in real if row.group == group]) for group in groups]
    if len(groups) > 1:
        parts.append(("all", real))
    if changed := [row for row in scores if row.changed]:
        parts.append(("changed", changed))
    for group, rows in parts:
        count = Counter(row.verdict for row in rows)
        ill = sum(count[word] for word in VERDICTS[:4])
        print(f"{group:12} {ill:4} " + " ".join(f"{count[word]:7}" for word in VERDICTS[:4])
              + f" {count['quiet'] + count['blamed']:8} {count['blamed']:7}")  # fmt: skip
    gains = Counter(row.gain for row in real if row.gain)
    print(f"gains of named cases: {dict(gains)}")
    traced = [row for row in real if row.group == "timeline"]
    right = [row for row in traced if row.iterations and 0.7 * row.steps <= row.iterations <= row.steps + 1]
    print(f"iterations: {len(right)} of {len(traced)} timelines of one GPU have about as many as the program had steps")


def main() -> int:
    """Score, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held-out", action="store_true", help="also the totals of the held-out part")
    parser.add_argument(
        "--cases", action="store_true", help="with --held-out or --part: case by case; at the end alone"
    )
    parser.add_argument("--part", help="eighth, ninth...: this part instead of the open one")
    parser.add_argument("--read", action="store_true", help="as `nsw read` of a single report shows it")
    parser.add_argument("--renamed", type=int, metavar="SEED", help="with names at random")
    parser.add_argument("--metrics", help="all, before, or groups and metrics: what counters are looked at")
    parser.add_argument("--only", nargs="*", help="ids of open cases")
    parser.add_argument("--json", type=Path, help="write the scores of the open part there")
    parser.add_argument("--keep", action="store_true", help="write named.txt: the open cases that are named, or quiet")
    options = parser.parse_args()
    how = {"alone": options.read, "seed": options.renamed, "metrics": metrics_named(options.metrics)}
    if options.part:
        scores = scores_of(cases(options.part), **how)
        if options.cases:
            print_cases(scores)
        print_totals(f"{options.part} part", scores)
        return 0
    chosen = [case for case in cases() if options.only is None or case["id"] in options.only]
    scores = scores_of(chosen, **how)
    print_cases(scores)
    print_totals("open part", scores)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in scores], indent=1))
    if options.keep:
        NAMED.write_text("".join(f"{row.id}\n" for row in scores if row.verdict in {"named", "quiet"}))
    if options.held_out:
        others = scores_of(cases("held-out"), **how)
        if options.cases:
            print_cases(others)
        print_totals("held-out part", others)
    return 0


if __name__ == "__main__":
    sys.exit(main())
