"""Large CSV of Nsight Compute: rows that are read together are those read line by line, whatever stands between."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nsw.readers.model import Options
from nsw.readers.ncu import csv_reader as ncu_csv
from nsw.readers.ncu import results as ncu_results
from nsw.readers.text.lines import line_blocks
from nsw.tables.parquet_tables import full_rows, to_arrow

OPTIONS = Options()
DETAILS = [
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name", "Rule Type",
    "Rule Description", "Estimated Speedup Type", "Estimated Speedup",
]  # fmt: skip
OLD = ["ID", "Process ID", "Host Name", "thread Domain:Push/Pop_Range:PL_Type", "Kernel Name", "Kernel Time",
       "Context", "Stream", "Section Name", "Metric Name", "Metric Unit", "Metric Value"]  # fmt: skip
ALL = [*DETAILS[:12], "Body Item Label", *DETAILS[12:]]


def line(cells, *, tail=""):
    return ",".join('"' + c.replace('"', '""') + '"' for c in cells) + tail


def row(header, told, *, tail=""):
    """A row with what is told by column name, as many columns as that needs."""
    last = header.index("Estimated Speedup") if told.get("Rule Name") else header.index("Metric Value")
    return line([told.get(name, "") for name in header[: last + 1]], tail=tail)


def read_together(path, count=8, options=OPTIONS):
    """Read a file as if it were large, in blocks of so many lines."""

    def blocks(path, _):
        for number, block in line_blocks(path):
            lines = block.split("\n")
            for at in range(0, len(lines), count):
                yield number + at, "\n".join(lines[at : at + count])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ncu_csv, "LARGE", 0)
        patch.setattr(ncu_csv, "line_blocks", blocks)
        patch.setattr(ncu_csv.ncu_values, "EVIDENCE_VALUES", 20)
        return ncu_csv.read(path, options)


def line_by_line(path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ncu_csv.ncu_values, "EVIDENCE_VALUES", 20)
        return ncu_csv.read(path, OPTIONS)


def both_ways(path, count=8):
    return read_together(path, count), line_by_line(path)


@pytest.fixture
def taken(monkeypatch):
    """How many rows were read together each time."""
    rows = []
    own = ncu_csv.CsvScan.add_plain_rows

    def take_rows(self, found, at):
        stop = own(self, found, at)
        rows.append(stop - at)
        return stop

    monkeypatch.setattr(ncu_csv.CsvScan, "add_plain_rows", take_rows)
    return rows


def assert_same(fast, exact):
    assert fast.problems == exact.problems
    assert list(fast.tables) == list(exact.tables)
    for name in exact.tables:
        assert list(full_rows(name, fast.tables[name])) == list(full_rows(name, exact.tables[name])), name


def large(seed, launches=150, *, header=DETAILS, decimal="."):
    """A details CSV with everything that has to come out right."""
    rng = random.Random(seed)
    lines = ["==PROF== Connected to process 42 (/bin/app)", line(header)]
    for i in range(launches):
        about = {"ID": str(i), "Process ID": rng.choice(["42", "43"]), "Process Name": "app", "Host Name": "127.0.0.1",
                 "Kernel Name": rng.choice([f"void k{i % 7}<int, {i % 3}>(int *, char)", 'k<"x">(int)', "_Z3addPfS_i"]),
                 "Context": "1", "Stream": "7", "Block Size": "(16, 4, 1)", "Grid Size": f"({i}, 1, 1)",
                 "Device": rng.choice(["0", "1", "NVIDIA A100"]), "CC": "8.6",
                 "thread Domain:Push/Pop_Range:PL_Type": ' "0:<default domain>:x" '}  # fmt: skip
        for j in range(rng.randint(1, 9)):
            value = rng.choice(["n/a", "CachePreferNone", "", "1e-05", "-3", f"{rng.random():.2f}",
                                f"{rng.randint(0, 10**9):,}", f"{rng.random() * 1e6:,.2f}", "0", "0.00", "(!) nan",
                                "12,34", "5 (1; 2)", "4.25 (1: 0; 2: 0.5)", "123456789012345.5"])  # fmt: skip
            if decimal == ",":
                value = value.translate(str.maketrans(",.", ".,"))
            told = {"Section Name": f"s{j % 2}", "Metric Value": value, "Body Item Label": rng.choice(["", "L"]),
                    "Metric Name": rng.choice(["Duration", "gpu__time_duration.sum", f"m{j}",
                                               "device__attribute_display_name"]),
                    "Metric Unit": rng.choice(["us", "%", "", "msecond", "ns"])}  # fmt: skip
            lines.append(row(header, about | told, tail="," if "Rule Name" in header else ""))
        if "Rule Name" in header:
            lines += [row(header, about | rule(rng, i)) for _ in range(rng.randint(0, 2))]
        if rng.random() < 0.1:
            lines.append(rng.choice(["epoch 3, loss 2", "", "==WARNING== No metrics to collect found in sections."]))
    return "\n".join(lines) + "\n"


def rule(rng, i):
    return {"Section Name": "S", "Rule Name": f"R{i % 5}", "Rule Type": rng.choice(["OPT", "INF", "WRN"]),
            "Rule Description": rng.choice([f"Use, {i}.", 'Say "more".', "Two\nlines", "plain"]),
            "Estimated Speedup Type": rng.choice(["local", ""]),
            "Estimated Speedup": rng.choice(["12.5", "", "1,234.5", "3%"])}  # fmt: skip


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("header", [DETAILS, OLD, ALL, DETAILS[:15]], ids=["details", "old", "all", "metrics"])
@pytest.mark.parametrize("count", [8, 10_000])
def test_the_same_as_row_by_row(tmp_path, taken, count, header, decimal):
    path = tmp_path / "large.csv"
    for seed in range(2):
        path.write_text(large(seed, header=header, decimal=decimal))
        fast, exact = both_ways(path, count)
        assert_same(fast, exact)
    assert sum(taken) > 100


ODD = {
    "two pages": lambda text: text + text.replace('"42"', '"4200"'),
    "two launches of one id": lambda text: text + text.replace('"42"', '"44"'),
    "two pages, two places": lambda text: text + large(3, decimal=","),
    "the header within a line": lambda text: text + "====....100% - 8 passes" + text[text.index('"ID"') :],
    "fields over lines": lambda text: text.replace("void k3", "void\nk3"),
    "a row over lines that does not end": lambda text: text.replace("void k3", 'void\n"k3', 1),
    "Windows": lambda text: text.replace("\n", "\r\n"),
    "a mark at the begin": lambda text: "\ufeff" + text,
    "colours": lambda text: text.replace("epoch", "\x1b[32mepoch\x1b[0m"),
    "coloured rows": lambda text: text.replace('"3","42"', '\x1b[32m"3","42"'),
    "bars": lambda text: text.replace("epoch", "10%\r20%\rstep"),
    "bars before rows": lambda text: text.replace('"5","42"', '10%\r"5","42"'),
    "names in blanks": lambda text: text.replace('"m3"', '" m3 "').replace('"s1"', '" s1"'),
    "other letters": lambda text: text.replace("k4", "k\u00b5\U0001f600"),
    "ids with a zero": lambda text: text.replace('"7","42"', '"07","42"'),
    "ids of letters": lambda text: text.replace('"9","42"', '"9a","42"').replace('"11","42"', '"-11","42"'),
    "letters beside the digits": lambda text: text.replace('"9","42"', '"9:","42"').replace('"11","42"', '"/11","42"'),
    "processes of letters": lambda text: text.replace('"9","42"', '"9","4x2"').replace('"11","42"', '"11","4.2"'),
    "ids too long": lambda text: text.replace('"9","42"', '"9999999999999999999","42"').replace(
        '"11","42"', '"11","9999999999999999999"'
    ),
    "blanks between fields": lambda text: text.replace('"9","42"', '"9" ,"42"').replace('"11","42"', '"11", "42"'),
    "other marks between fields": lambda text: text.replace('"9","42"', '"9";"42"').replace('"11","42"', '"11""42"'),
    "no process": lambda text: text.replace('"8","42"', '"8",""'),
    "no line end": lambda text: text.rstrip("\n"),
    "torn": lambda text: text[:-20],
    "a field too few": lambda text: text.replace('"m4",', "", 1),
    "rows of a shorter header": lambda text: text.replace('",\n', '"\n'),
    "empty lines": lambda text: text.replace("\n", "\n\n"),
    "bytes that are no text": lambda text: text.replace("k5", "k\udcff5"),
    "a table between the rows": lambda text: text.replace("epoch 3, loss 2", '"GPU ID","Name"\n"0","A"\n"1","B"'),
    "blank rules": lambda text: text.replace('"R1"', '""'),
    "no names": lambda text: text.replace('"m1"', '""'),
    "names of blanks": lambda text: text.replace('"m2"', '" "'),
}


@pytest.mark.parametrize("change", ODD.values(), ids=ODD.keys())
def test_odd_lines_are_read_as_row_by_row(tmp_path, change):
    path = tmp_path / "odd.csv"
    path.write_text(change(large(1)), errors="surrogateescape", newline="")
    assert_same(*both_ways(path))


@pytest.mark.parametrize("name", ["two pages", "the header within a line", "fields over lines", "Windows", "colours",
                                  "bars", "no line end", "torn", "a field too few", "other letters", "no names",
                                  "bytes that are no text", "a mark at the begin"])  # fmt: skip
def test_odd_lines_do_not_make_the_whole_file_slow(tmp_path, taken, name):
    path = tmp_path / "odd.csv"
    path.write_text(ODD[name](large(1)), errors="surrogateescape", newline="")
    assert read_together(path).tables["metrics"]
    assert sum(taken) > 100


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_encodings_of_windows(tmp_path, encoding):
    path = tmp_path / "r.csv"
    path.write_bytes(large(1).encode(encoding))
    fast, exact = both_ways(path)
    assert_same(fast, exact)


HEAD = {"ID": "0", "Process ID": "42", "Kernel Name": "k(int)", "Device": "0", "Section Name": "S"}
LINES = [
    *(row(DETAILS, HEAD | {"ID": i, "Metric Name": name, "Metric Unit": unit, "Metric Value": value}, tail=",")
      for i, name, unit, value in [("0", "Duration", "us", "1,234.5"), ("0", "Duration", "ms", "1.23"),
                                   ("1", "x", "", "1,5"), ("2", "y", "%", "99.999"), ("2", "t", "", "text"),
                                   ("1", "Duration", "us", "628.03"), ("0", "z", "", "1,234")]),
    *(row(DETAILS, HEAD | {"ID": i, "Rule Name": "R", "Rule Type": "OPT", "Rule Description": text,
                           "Estimated Speedup": "1,234"})
      for i, text in [("0", "one"), ("3", 'a "b"'), ("1", "two\nlines")]),
    row(DETAILS, HEAD | {"ID": "4", "Kernel Name": 'k<"a">', "Metric Name": "x", "Metric Value": "5"}, tail=","),
    row(DETAILS, HEAD | {"ID": "5"}), '"6","42","cut', '"7","42"', "said", "", "==ERROR== bad", line(DETAILS),
    line(DETAILS[:15]), '"0","42","over', 'lines"', "\x1b[1m", "a\rb", '"\u00b5"', '"1","42",,,,,,,,,,"S","n","u","5"',
]  # fmt: skip

LINES += ['"GPU ID","Name"', '"0","A"']
LINES += LINES[9].split("\n")  # the two lines of one rule, also by themselves and with others between


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first=st.lists(st.sampled_from(["said", "", line(DETAILS)]), max_size=2),
    lines=st.lists(st.sampled_from(LINES), min_size=3, max_size=25),
    count=st.sampled_from([1, 3, 20]),
)
def test_lines_in_any_order(tmp_path, first, lines, count):
    path = tmp_path / "r.csv"
    path.write_text("\n".join([*first, line(DETAILS), *lines, ""]), newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ncu_results, "ARROW_ROWS", 3)
        assert_same(*both_ways(path, count))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "".join(f"{i % 2}: {line}\n" for i, line in enumerate(text.split("\n"))),
        lambda text: text + '"ID","Process ID","Kernel Name","x.avg"\n"","","","%"\n"0","5","k","1.5"\n',
        lambda _: (
            '"ID","Process ID","Kernel Name","x.avg"\n"","","","%"\n' + '"0","5","k","1.5"\n"1","5","k","2"\n' * 90
        ),
        lambda _: (
            '"Process ID","Kernel Name","Invocations","Metric Name","Metric Unit","Minimum","Maximum","Average"\n'
            + '"5","k","3","x.avg","%","1","3","2"\n' * 90
        ),
    ],
    ids=["labels of ranks", "another page", "a raw page", "a summary"],
)
def test_other_files_are_read_the_same(tmp_path, change):
    path = tmp_path / "r.csv"
    path.write_text(change(large(1)))
    assert_same(*both_ways(path))


def raw(metrics, launches=200, *, change=lambda cells: cells):
    """A raw page, a launch a row: numbers, texts, empty cells, a kernel with quotes in its name."""
    rng = random.Random(5)
    lines = [
        line([*DETAILS[:11], *metrics]),
        line([""] * 11 + [rng.choice(["%", "us", "", "msecond"]) for _ in metrics]),
    ]
    for i in range(launches):
        head = [str(i), rng.choice(["42", "43"]), "app", "127.0.0.1", rng.choice(["k(int)", 'k<"x">(int)', "_Z3addPfS_i"]),
                "1", "7", "(16, 4, 1)", f"({i % 3}, 1, 1)", "0", "9.0"]  # fmt: skip
        values = [
            rng.choice(["", "n/a", f"{rng.random() * 1e4:,.6f}", "7", "NVIDIA H100", "5 (1; 2)"]) for _ in metrics
        ]
        lines.append(line(change(head + values)))
    return "\n".join(lines) + "\n"


RAW = ["gpu__time_duration.sum", "device__attribute_display_name", "x.avg", "y.sum"]


@pytest.mark.parametrize("count", [8, 10_000])
def test_launches_of_a_raw_page_are_read_together_as_row_by_row(tmp_path, taken, count):
    path = tmp_path / "raw.csv"
    path.write_text(raw(RAW))
    assert_same(*both_ways(path, count))
    assert sum(taken) > 100


@pytest.mark.parametrize(
    "change",
    [lambda cells: cells[:-1] if cells[0] == "99" else cells, lambda cells: ["7", *cells[1:]],
     lambda cells: ["x", *cells[1:]] if cells[0] == "99" else cells, lambda cells: [*cells, ""]],
    ids=["a cell too few", "all of one id", "an id of letters", "a cell too many"],
)  # fmt: skip
def test_damaged_rows_of_a_raw_page_are_read_as_row_by_row(tmp_path, change):
    path = tmp_path / "raw.csv"
    path.write_text(raw(RAW, change=change))
    assert_same(*both_ways(path))


def test_a_raw_page_whose_metrics_are_not_behind_its_launch_is_read_row_by_row(tmp_path, taken):
    path = tmp_path / "raw.csv"
    path.write_text(raw([*RAW, "Kernel Time"]))
    assert_same(*both_ways(path))
    assert not sum(taken)


def test_only_what_is_asked_for(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(large(1))
    report = read_together(path, options=Options(frozenset({"launches"})))
    assert list(report.tables) == ["launches"]


def test_the_columns_fit_the_schema(tmp_path, monkeypatch):
    monkeypatch.setattr(ncu_results, "ARROW_ROWS", 10)
    path = tmp_path / "r.csv"
    path.write_text(large(1))
    for name, table in read_together(path).tables.items():
        assert to_arrow(name, table).num_rows == len(list(full_rows(name, table)))


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
def test_durations_are_moved_as_digits(tmp_path, unit):
    rng = random.Random(4)
    values = [f"{rng.uniform(0, 10 ** rng.randint(0, 6)):.{rng.randint(0, 9)}f}" for _ in range(2000)]
    told = [HEAD | {"ID": str(i), "Metric Name": "Duration", "Metric Unit": unit, "Metric Value": v}
            for i, v in enumerate([*values, "123456789012345.123456789012345"])]  # fmt: skip
    path = tmp_path / "r.csv"
    path.write_text("\n".join([line(DETAILS), *(row(DETAILS, t, tail=",") for t in told)]) + "\n")
    assert_same(*both_ways(path))
