"""The demo's answers equal the README beside the recordings, and plain SQL over them."""

import json
import re
import shlex
import sqlite3
from collections import defaultdict
from pathlib import Path

import pytest

import nsw.demo
from nsw.demo import extract, recordings

CASES = [(g, b) for g in (1, 2, 4) for b in (8, 16, 32, 128)]


def readme_figures() -> dict[tuple[int, int], float]:
    """images/s by GPUs and batch, from the table in the recordings' README."""
    text = (Path(nsw.demo.__file__).parent / "recordings" / "alexnet-4xH200" / "README.md").read_text()
    rows = re.findall(r"^\| (\d) GPUs? \|([^\n]*)\|$", text, re.MULTILINE)
    return {
        (int(gpus), batch): float(cell)
        for gpus, cells in rows
        for batch, cell in zip((8, 16, 32, 128), cells.split("|"), strict=True)
    }


@pytest.fixture(scope="module")
def summary(demo):
    done = demo.nsw("summarize", "--json", exits=0)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def cases(summary):
    return {(c["params"]["gpus"], c["params"]["batch"]): c for c in summary["cases"]}


STEADY = """
    CREATE TEMP TABLE steps AS
        SELECT globalTid >> 24 AS process, start, end,
               row_number() OVER (PARTITION BY globalTid ORDER BY start) - 1 AS number
        FROM NVTX_EVENTS LEFT JOIN StringIds ON id = textId WHERE coalesce(text, value) = 'step';
    CREATE TEMP TABLE calls AS
        SELECT r.globalTid >> 24 AS process, r.correlationId, r.start, r.end, r.nameId
        FROM CUPTI_ACTIVITY_KIND_RUNTIME r
        JOIN (SELECT process, min(start) AS begins, max(end) AS ends FROM steps WHERE number >= {warmup} GROUP BY 1) s
        ON r.globalTid >> 24 = s.process AND r.start >= s.begins AND r.start < s.ends;
    CREATE UNIQUE INDEX temp.of_calls ON calls (process, correlationId);
    CREATE TEMP VIEW kernels AS SELECT k.* FROM CUPTI_ACTIVITY_KIND_KERNEL k
        JOIN calls c ON c.process = k.globalPid >> 24 AND c.correlationId = k.correlationId;
    CREATE TEMP VIEW copies AS SELECT m.* FROM CUPTI_ACTIVITY_KIND_MEMCPY m
        JOIN calls c ON c.process = m.globalPid >> 24 AND c.correlationId = m.correlationId;
    CREATE TEMP VIEW sets AS SELECT m.* FROM CUPTI_ACTIVITY_KIND_MEMSET m
        JOIN calls c ON c.process = m.globalPid >> 24 AND c.correlationId = m.correlationId;
"""


@pytest.fixture(scope="module")
def databases(tmp_path_factory, cases):
    """An open database for each case, straight from the recordings, with views of what the steady steps launched."""
    folder = tmp_path_factory.mktemp("recordings")
    found = {}
    for recording in recordings():
        path = next(p for p in extract(recording, folder) if p.suffix == ".sqlite")
        case = recording.params["gpus"], recording.params["batch"]
        found[case] = sqlite3.connect(path)
        found[case].executescript(STEADY.format(warmup=cases[case]["iterations"]["warmup"]))
    yield found
    for database in found.values():
        database.close()


def test_the_scaling_table_is_the_readme_beside_the_recordings(summary):
    figures = readme_figures()
    assert len(figures) == 12
    points = {(p["at"], p["series"]["batch"]): p for p in summary["scaling"]["points"]}
    assert {key: p["figure"] for key, p in points.items()} == figures
    for (gpus, batch), p in points.items():
        speedup = figures[gpus, batch] / figures[1, batch]
        assert p["speedup"] == pytest.approx(speedup, rel=1e-12)
        assert p["efficiency_pct"] == pytest.approx(100 * speedup / gpus, rel=1e-12)
        assert p["profiled"] is True


def test_every_case_of_the_recipe_is_answered(cases):
    assert sorted(cases) == sorted(CASES)


def operations(db: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    """Time and calls of each kernel, copy kind and set, in SQL and nothing else."""
    kernels = db.execute(
        "SELECT s.value, sum(k.end - k.start), count(*) FROM kernels k"
        " JOIN StringIds s ON s.id = k.demangledName GROUP BY k.demangledName"
    )
    found = {name: (ns, calls) for name, ns, calls in kernels}
    names = {1: "[CUDA memcpy Host-to-Device]", 2: "[CUDA memcpy Device-to-Host]", 8: "[CUDA memcpy Device-to-Device]"}
    for kind, ns, calls in db.execute("SELECT copyKind, sum(end - start), count(*) FROM copies GROUP BY copyKind"):
        found[names[kind]] = (ns, calls)
    ns, calls = db.execute("SELECT sum(end - start), count(*) FROM sets").fetchone()
    if calls:
        found["[CUDA memset]"] = (ns, calls)
    return found


def covering(found: dict[str, tuple[int, int]], cover: float = 0.9) -> dict[str, tuple[int, int]]:
    """The largest that together take `cover` of the whole."""
    whole, running, chosen = sum(ns for ns, _ in found.values()), 0, {}
    for name, (ns, calls) in sorted(found.items(), key=lambda item: -item[1][0]):
        if running >= cover * whole:
            break
        running += ns
        chosen[name] = (ns, calls)
    return chosen


@pytest.mark.parametrize("case", CASES)
def test_the_hotspots_are_those_of_plain_sql(case, cases, databases):
    found = operations(databases[case])
    assert {h["name"]: (h["total_ns"], h["calls"]) for h in cases[case]["hotspots"]} == covering(found)
    whole = sum(ns for ns, _ in found.values())
    assert cases[case]["gpu_ns"] == whole
    for h in cases[case]["hotspots"]:
        assert h["share_pct"] == pytest.approx(100 * h["total_ns"] / whole, rel=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_the_share_of_communication_is_that_of_plain_sql(case, cases, databases):
    found = operations(databases[case])
    nccl = sum(ns for name, (ns, _) in found.items() if name.startswith("nccl"))
    whole = sum(ns for ns, _ in found.values())
    assert cases[case]["communication_pct"] == pytest.approx(100 * nccl / whole, rel=1e-12)
    assert (nccl > 0) == (case[0] > 1)


@pytest.mark.parametrize("case", CASES)
def test_the_api_calls_are_those_of_plain_sql(case, cases, databases):
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, ns, calls in databases[case].execute(
        "SELECT s.value, sum(r.end - r.start), count(*) FROM calls r"
        " JOIN StringIds s ON s.id = r.nameId GROUP BY r.nameId"
    ):
        short = re.sub(r"_v\d+$", "", name)
        found[short][0] += ns
        found[short][1] += calls
    expected = covering({name: (ns, calls) for name, (ns, calls) in found.items()})
    assert {a["name"]: (a["total_ns"], a["calls"]) for a in cases[case]["api"]} == expected


@pytest.mark.parametrize("case", CASES)
def test_the_copies_have_the_bytes_and_bandwidth_of_plain_sql(case, cases, databases):
    rows = databases[case].execute("SELECT sum(bytes), sum(end - start), count(*) FROM copies GROUP BY copyKind")
    copies = [c for c in cases[case]["copies"] if c["name"].startswith("[CUDA memcpy")]
    assert sorted((c["total_bytes"], c["total_ns"], c["calls"]) for c in copies) == sorted(rows)
    for c in copies:
        assert c["bytes_per_s"] == pytest.approx(c["total_bytes"] / c["total_ns"] * 1e9, rel=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_the_iterations_are_those_that_the_program_ran(case, cases, databases):
    """20 steps, of which it timed the last 17: what it says of its speed is the median step."""
    found = cases[case]["iterations"]
    assert (found["count"] + found["warmup"], found["name"], found["processes"]) == (20, "step", case[0])
    steps = databases[case].execute("SELECT process, count(*) FROM steps GROUP BY 1").fetchall()
    assert [count for _, count in steps] == [20] * case[0]
    gpus, batch = case
    (figure,) = (f["median"] for f in cases[case]["figures"])
    assert gpus * batch / found["med_ns"] * 1e9 == pytest.approx(figure, rel=0.06)


def test_set_up_is_reported_beside_the_steady_state(cases):
    first = cases[1, 8]
    assert [p["phase"] for p in first["phases"]] == ["setup", "warmup", "steady", "end"]
    uploaded = dict(first["phases"][0]["what"])["[CUDA memcpy Host-to-Device]"]
    assert uploaded == pytest.approx(24.2e6, rel=0.01)
    copied = sum(c["total_ns"] for c in first["copies"])
    assert 5 < 100 * copied / first["gpu_ns"] < 7  # of all that the report holds they are 47.8 %


def test_a_chosen_case_has_the_screen_of_a_report_and_names_how_it_does_beside_its_baseline(demo):
    lines = demo.nsw("summarize", "--case", "gpus=4,batch=8").stdout.splitlines()
    assert lines[0].startswith("gpus-4_batch-8: images_per_sec 6,790.5 images/s, 67 % efficiency beside gpus-1_batch-8")
    assert any(line.startswith(" NCCL alone") for line in lines)
    assert any(line.startswith("* GPU 0 is idle 41 % (the mean GPU 17 %)") for line in lines)
    assert sum(line.startswith("* batch=8: an iteration takes 1.549 ms more") for line in lines) == 1


def test_of_chosen_cases_the_baseline_stays_beside_them(demo):
    chosen = demo.nsw("summarize", "--case", "gpus=4").stdout.splitlines()
    whole = demo.nsw("summarize").stdout.splitlines()
    assert chosen[0] == whole[0].removesuffix(")") + ", for comparison gpus-1_batch-8, gpus-1_batch-16 and 2 more)"
    assert chosen[1:7] == whole[1:7]
    assert not any("gpus-2" in line for line in chosen)


def test_each_command_that_an_answer_names_works(demo, tmp_path):
    for chosen in ((), ("--case", "gpus=4"), ("--case", "gpus-4_batch-8")):
        lines = demo.nsw("summarize", *chosen).stdout.splitlines()
        commands = [words for line in lines for words in re.findall(r"nsw ((?:summarize|report) [^`]+)`", line)]
        findings = sum(line.startswith("* ") for line in lines)
        if chosen[1:] == ("gpus-4_batch-8",):  # a long path of nsw hides rows, and names a command again
            assert len(commands) > findings
        else:
            assert len(commands) == findings + 1
        for command in dict.fromkeys(commands):
            done = demo.nsw(
                *shlex.split(command), *(["-o", str(tmp_path / "page.html")] if "report" in command else [])
            )
            assert done.returncode == 0, (command, done.stderr)
    assert "timeline" in (tmp_path / "page.html").read_text()


def test_an_iteration_is_offered_to_be_drawn_only_where_its_report_can_be_read(demo, monkeypatch):
    def offers() -> bool:
        return (
            "--timeline gpus-4_batch-8` draws an iteration" in demo.nsw("summarize", "--case", "gpus=4,batch=8").stdout
        )

    assert offers()
    reports = (demo.folder / "reports").rename(demo.folder / "away")
    try:
        assert not offers()
    finally:
        reports.rename(demo.folder / "reports")
    (report,) = (demo.folder / "reports" / "gpus-4_batch-8.timeline.r1").glob("*.sqlite*")
    recorded, binary = report.read_bytes(), report.parent / "timeline.nsys-rep"
    report.unlink()
    binary.write_bytes(b"NVIDIA Tegra Profiler Report\0")
    monkeypatch.setenv("NSW_NSYS", "/nowhere/nsys")
    try:
        assert not offers()
        refused = demo.nsw("report", "--timeline", "gpus-4_batch-8")
    finally:
        binary.unlink()
        report.write_bytes(recorded)
    assert refused.returncode == 2
    assert "--timeline gpus-4_batch-8: its report cannot be exported to SQLite: /nowhere/nsys: " in refused.stderr
    assert "hint: run `nsys export --type sqlite" in refused.stderr


def test_reports_of_unlike_work_are_called_not_alike_before_their_verdict(demo):
    first, more_gpus, larger = (
        str(next((demo.folder / "reports" / f"{case}.timeline.r1").glob("*.sqlite*")))
        for case in ("gpus-1_batch-8", "gpus-4_batch-8", "gpus-1_batch-128")
    )
    unlike = demo.nsw("compare", first, more_gpus).stdout
    assert unlike.startswith(
        "Not alike: GPUs: 1 and 4\ndifferent numbers of GPUs: iteration 3.26 ms in A, 4.81 ms in B\n"
    )
    words = " ".join(unlike.split())
    assert "2.71 times the work a second on 4 times the GPUs: 68 % efficiency. Work over time decides" in words
    assert "An iteration takes 1.549 ms more: NCCL alone takes 2.096 ms more" in words
    assert not re.search("faster|slower|The figure", words)
    assert demo.nsw("compare", first, larger).stdout.startswith(
        "Not alike: copied to a GPU in an iteration: 4.594 MiB and 73.50 MiB\nB beside A"
    )
    assert "1 run a side, if an iteration does as much work" in demo.nsw("compare", first, larger).stdout
    assert demo.nsw("compare", first, first).stdout.startswith("B beside A: iteration: cannot tell (")


def test_the_parts_of_an_iteration_add_up_in_each_row_and_are_the_same_everywhere(summary, demo):
    blocks = [block for block in summary["blocks"] if block["kind"] == "table"]
    table = next(block for block in blocks if block["name"] == "answer")
    columns = [column["name"] for column in table["columns"]]
    by_case = {case["id"]: case["spent"] for case in summary["cases"]}
    lines = demo.nsw("summarize").stdout.splitlines()[4:8]
    for case, row, line in zip(
        [f"gpus-4_batch-{batch}" for batch in (8, 16, 32, 128)], table["rows"], lines, strict=True
    ):
        cells = dict(zip(columns, row, strict=True))
        parts = ("computing_pct", "copies_pct", "exposed_pct", "idle_pct")
        assert sum(cells[part] for part in parts) == pytest.approx(100)
        assert {part: cells[part] for part in parts} == pytest.approx({part: by_case[case][part] for part in parts})
        printed = [int(share) for share in re.findall(r"(\d+) %", line)]
        assert sum(printed[1:5]) == 100  # behind the efficiency
    for case in by_case:
        (spent,) = (block for block in blocks if block["name"] == "spent" and block["case"] == case)
        at = [column["name"] for column in spent["columns"]].index("share_pct")
        assert sum(row[at] for row in spent["rows"]) == pytest.approx(100, abs=1)
        assert spent["rows"][-1][at] == pytest.approx(by_case[case]["idle_pct"])
    iterations = next(block for block in blocks if block["name"] == "iterations")
    at = [column["name"] for column in iterations["columns"]].index("gpu_busy_pct")
    assert {row[0]: 100 - row[at] for row in iterations["rows"]} == pytest.approx(
        {case: spent["idle_pct"] for case, spent in by_case.items()}
    )


def test_a_sentence_that_divides_a_change_adds_up(summary):
    text = next(finding["text"] for finding in summary["findings"] if "more than it should" in finding["text"])
    whole, *parts = [
        float(size) * (1 if word == "more" else -1) for size, word in re.findall(r"([\d.]+) ms (more|less)", text)
    ]
    filled = re.search(r"([\d.]+) ms of that fill its idle time", text)
    assert len(parts) == 3
    assert sum(parts) - float(filled[1]) == pytest.approx(whole)
    kernels = re.findall(r"([\d.]+) us[,)]", text)
    assert sum(map(float, kernels)) / 1000 == pytest.approx(parts[1], abs=0.001)
