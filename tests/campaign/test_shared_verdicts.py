"""What a campaign gives to others says what its own answer says: of each recording in the repository."""

from dataclasses import replace

import pytest

from nsw.analysis.first_screen import find_headline, first_screen_blocks
from nsw.analysis.kernels import kernel_table_of_report
from nsw.analysis.of_reports import LOOKED_AT, ReadReport, summarize_reports
from nsw.analysis.summary import OF_KERNELS, summarize
from nsw.campaign.anonymous import Names, anonymous_table
from nsw.readers.detect import read
from nsw.tables import to_arrow
from tests.analysis import recorded
from tests.analysis.test_diagnosis import OPEN, recordings

EVERY = sorted({case.get("of", name): name for name, case in OPEN.items()}.values())


def shared(tables, names, *, hide=False):
    """Tables as others get them."""
    arrow = {name: to_arrow(name, rows) for name, rows in tables.items() if len(rows)}
    copies = {name: anonymous_table(name, table, names, hide=hide) for name, table in arrow.items()}
    return {name: table for name, table in copies.items() if table is not None}


def summary_of(reports):
    read_reports = [
        ReadReport(kind, {name: tables[name] for name in LOOKED_AT if name in tables}, kernel_table_of_report(tables))
        for kind, tables in reports.items()
    ]
    summary = summarize_reports("reports", read_reports)
    assert len(summary.cases) == 1, "a timeline and the counters of its kernels are of one program"
    return summary


def said(summary):
    return [
        find_headline(first_screen_blocks(summary)),
        *((finding.name, finding.text) for finding in summary.findings),
    ]


def names_of_a_machine():
    names = Names()
    for host in ("node", "node1", "node2"):
        names.add("host", host)
    return names


def reports_of(name, folder):
    paths = recordings.unpack(OPEN[name].get("of", name), folder)
    return {kind: read(path).tables for kind, path in paths.items()}


@pytest.mark.parametrize("name", EVERY)
def test_the_headline_and_findings_of_a_recording_stay_when_it_is_shared(name, tmp_path):
    names, hiding = names_of_a_machine(), names_of_a_machine()
    reports = reports_of(name, tmp_path)
    # traces, which campaigns have no tables of, are what reports alone are summed up from
    own = {kind: {n: t for n, t in tables.items() if not n.endswith("_trace")} for kind, tables in reports.items()}
    headline, *findings = said(summary_of(own))
    after = said(summary_of({kind: shared(tables, names) for kind, tables in reports.items()}))
    assert after == [names.text(headline), *((cause, names.text(text)) for cause, text in findings)]
    _, *hidden = said(summary_of({kind: shared(tables, hiding, hide=True) for kind, tables in reports.items()}))
    assert [cause for cause, _ in hidden] == [cause for cause, _ in findings]


@pytest.mark.parametrize("name", recorded.ASKED)
def test_the_headline_and_findings_of_a_recorded_campaign_stay_when_it_is_shared(name):
    names, data = names_of_a_machine(), recorded.campaign(name)
    copies = shared(data.tables, names)
    tables = {table: copies[table].to_pylist() if table in copies else [] for table in data.tables}
    counters = {table: rows for table, rows in shared(data.counters or {}, names).items() if table in OF_KERNELS}
    after = summarize(replace(data, tables=tables, counters=counters), recorded.ASKED[name])
    headline, *findings = said(recorded.answer(name))
    assert said(after) == [names.text(headline), *((cause, names.text(text)) for cause, text in findings)]
