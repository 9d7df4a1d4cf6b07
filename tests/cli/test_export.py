"""`nsw export`: timelines for Perfetto and tables, of a campaign of recorded reports."""

import csv
import json
import stat
import zipfile

import pyarrow.parquet as pq
import pytest

from tests.present.test_perfetto import schema, slices_of  # noqa: F401  a fixture

CASES = ("--case", "gpus=2", "--case", "batch=8")


@pytest.fixture
def demo(nsw):
    assert nsw("run", "alexnet_scaling", "-s", "demo", "--yes", "--case", "gpus=1,2", "--case", "batch=8").code == 0
    return nsw


def rows_of(nsw, home, table, *which):
    (report,) = home.glob("campaigns/*/reports/gpus-2_batch-8.*/*.sqlite")
    return json.loads(nsw("read", report, "--table", table, "--json", *which).out)["reports"][0]["tables"][table]


def test_a_timeline_holds_every_event_of_the_reports(demo, home, schema):  # noqa: F811
    said = demo("export", "--trace", "t.pftrace", *CASES)
    assert said.code == 0, said.err
    found = slices_of(schema, (home / "t.pftrace").read_bytes())
    tables = {name: rows_of(demo, home, name) for name in ("gpu_trace", "api_trace", "nvtx_trace")}
    assert said.err.startswith(f"t.pftrace: {sum(map(len, tables.values())):,} events, ")
    gpu = [row for row in found if row[5] not in {"api", "nvtx"}]
    assert sorted((row[3], row[4] - row[3], row[5]) for row in gpu) == sorted(
        (row["start_ns"], row["duration_ns"], row["kind"]) for row in tables["gpu_trace"]
    )
    assert sorted((row[3], row[2]) for row in found if row[5] == "api") == sorted(
        (row["start_ns"], row["name"]) for row in tables["api_trace"]
    )
    assert {row[0] for row in gpu} == {"gpus-2_batch-8, GPU 0", "gpus-2_batch-8, GPU 1"}


def test_steps_are_chosen(demo, home, schema):  # noqa: F811
    said = demo("export", "--trace", "t.pftrace", "--step", "5-6", *CASES)
    assert said.code == 0, said.err
    found = slices_of(schema, (home / "t.pftrace").read_bytes())
    steps = [row for row in rows_of(demo, home, "iteration_trace") if row["iteration"] in {5, 6}]
    start = min(row["start_ns"] for row in steps)
    end = max(row["start_ns"] + row["duration_ns"] for row in steps)
    assert all(row[3] < end and (row[4] or row[3]) >= start for row in found)
    launched = sum(row["gpu_ops"] for row in steps)
    assert launched <= sum(row[5] not in {"api", "nvtx"} for row in found) < 1.2 * launched


REFUSED = [
    ([], "nsw export needs one of: --trace FILE, --csv FOLDER, --parquet FOLDER"),
    (["--csv", "a", "--parquet", "b"], "nsw export needs one of"),
    (["--csv", "a", "--rank", "1"], "--rank and --step belong to --trace"),
    (["--trace", "t", "--step", "7-5"], "--step 7-5: expected an iteration or a range of them"),
    (["--trace", "t", "--step", "900"], "--step 900: no timeline has such an iteration"),
    (["--trace", "t", "--rank", "1"], "--rank: the reports name no ranks"),
    (["--trace", "no/such/folder/t", "--step", "5"], "no/such/folder/t cannot be written"),
]


def test_what_cannot_be_exported_is_said(demo, home):
    for words, what in REFUSED:
        said = demo("export", *words)
        assert said.code != 0
        assert what in said.err
        assert not (home / "t").exists()


def test_a_large_file_needs_a_yes(demo, home, monkeypatch):
    from nsw.cli import summarizing

    monkeypatch.setattr(summarizing, "_LARGE", 1000)
    said = demo("export", "--trace", "t", *CASES, "--step", "5")
    assert said.code == 2
    assert "--yes answers yes" in said.err
    assert not (home / "t").exists()
    assert demo("export", "--trace", "t", *CASES, "--step", "5", "--yes").code == 0
    assert stat.S_ISREG((home / "t").stat().st_mode)


def test_a_campaign_without_a_timeline_says_so(good, nsw):
    said = nsw("export", "--trace", "t", exits=2)
    assert "no report of a timeline is here" in said.err


def test_a_campaign_of_tables_alone_says_so_and_what_works(demo, home):
    (folder,) = (home / "campaigns").glob("*-*")
    lock = folder / "recipe.lock.yaml"
    lock.write_text(lock.read_text().replace("collect: reports", "collect: tables"))
    for report in folder.glob("reports/*/*.sqlite"):
        report.unlink()
    for words in (
        ["export", "--trace", "t"],
        ["report", "-o", "t.html", "--timeline", "gpus-1_batch-8"],
        ["summarize", "-o", "t.svg", "--plot", "timeline"],
    ):
        refused = demo(*words)
        assert refused.code == 2, refused.err
        assert f"no report of campaign {folder.name} is here: `collect: tables` leaves them on the site" in refused.err
        assert f"`nsw summarize {folder.name}` and `nsw report {folder.name}` need the tables alone" in refused.err
        assert not list(home.glob("t*"))
    assert demo("summarize").code == demo("report", "-o", "t.html").code == 0


def test_tables_are_those_of_summarize(demo, home):
    assert demo("export", "--csv", "a").code == demo("summarize", "-o", "b/").code == 0
    files = {path.name: path.read_bytes() for path in (home / "a").iterdir()}
    assert files == {path.name: path.read_bytes() for path in (home / "b").iterdir()}
    assert demo("export", "--parquet", "c").code == 0
    lines = list(csv.DictReader((home / "a" / "gpu_summary.csv").read_text().splitlines()))
    assert pq.read_table(home / "c" / "gpu_summary.parquet").num_rows == len(lines) > 0


def test_tables_apart_from_their_campaign_say_what_can_be_done_with_them(nsw, recipe, home):
    one = recipe("{command: 'echo f=1', figures: {f: {regex: 'f=(.*)', unit: ''}}}", "matrix: {n: [1, 2]}\n")
    assert nsw("run", one, "-s", "here").code == 0
    (campaign,) = (home / "campaigns").iterdir()
    assert nsw("export", str(campaign), "--share", "share.zip").code == 0
    with zipfile.ZipFile("share.zip") as share:
        share.extractall("share")
    assert nsw("export", str(campaign), "--csv", "csv").code == 0
    for folder, words in (("share", "open share/answer.html in a browser"), ("csv", "pandas.read_csv('csv/")):
        for command in ("summarize", "read", "report", "compare"):
            assert words in nsw(command, folder, *([folder] if command == "compare" else [])).err, (command, folder)
    assert "pandas.read_csv('csv/figures.csv')" in nsw("read", "csv/figures.csv").out
    assert f"`nsw summarize {campaign}`" in nsw("read", str(campaign)).err
    assert nsw("summarize", str(campaign)).code == 0
