"""nvprof's (and pgprof's) reports as text or CSV, alone or in the middle of a job's output.

Every line is either a row of the table being read, or says what comes next: a process, a result, a table.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from nsw.readers.model import Options, Report, Sample
from nsw.readers.nvprof.text import counters, cpu_samples, other_tables, summaries, traces
from nsw.readers.nvprof.text.csv_tables import csv_table, header_of
from nsw.readers.nvprof.text.state import AGAIN, RowTaker, Sink, Stream, clean_line, read_lines
from nsw.readers.nvprof.text.summaries import nvtx_name, take_old_range
from nsw.readers.text.known_words import meaning_by_word
from nsw.wording import singular_or_count

__all__ = ["read", "sniff"]


_MESSAGE = re.compile(r"\s*(?:==(?P<pid>\d{1,10})==|={8})\s?(?P<text>.*)")
# Behind what the program had not ended with a line end: only what can be of nobody else.
_MESSAGE_BEHIND = re.compile(
    r"==\d{1,10}== (?:(?:NV|PG)PROF is profiling process \d|Profiling (?:application|result):|Warning: ).*"
)
_PROFILING = re.compile(r"(?:NV|PG)PROF is profiling process (\d+), command: (.*)")
_PROFILING_ANYHOW = re.compile(r"(?:\s*=\S{0,14} )?(?:NV|PG)PROF is profiling process\b")
_RESULT = re.compile(r"\s*Profiling result:\s*\Z")
_RESULT_AND_MORE = re.compile(r"==\d{1,10}== Profiling result:[ ]+\S.{40}")  # all in one line
_TITLE = re.compile(
    r"\s*(?P<what>Metric result|Event result|Unified Memory profiling result|NVTX result|API calls|GPU activities"
    r"|OpenACC \((?:excl|incl)\)|OpenMP \((?:excl|incl)\)|CPU profiling result(?: \([^)]*\))?|System profiling result"
    rf"|{other_tables.TITLES}|Data collected at .*|Warp State):?\s*\Z",
    re.IGNORECASE,
)
_NVTX = re.compile(r'\s*(?P<what>Thread|Domain|Range) "(?P<name>.*)"(?: \(id = \d+\))?\s*\Z')
_DEVICE = re.compile(r'\s*Device "([^"]{1,200})"\s*\Z')
_NO_PROCESS = "the line that names a process and its command is damaged"
_SEVERITY = re.compile(r"(Warning|Error):\s*(.*)")
_BARE_WARNING = re.compile(
    r"Warning: (?:\d+ records have invalid timestamps|Found \d+ invalid records|One or more events or metrics)"
)
_NOTHING_PROFILED = re.compile(
    r"\s*No (?:kernels|(?:API|OpenACC|OpenMP) activities|events/metrics|events|metrics) were profiled\."
)
_SECTIONS = meaning_by_word("nvprof sections")
# How all lines begin that `_Reading` follows: most lines of a job's output do not.
_TELLS = re.compile(
    r"""[\s\ufeff]*(?:==|No|Total|"?(?:Type|Time\ ?\(%\)|Start|Device|Invocations|Context)|Count|Thread|Domain|Range
    |(?:Profiling|Metric|Event|NVTX|Unified\ Memory|CPU\ profiling|System\ profiling)\ |API|GPU|OpenACC|OpenMP
    |"?Sample\ Count|Warning:\ |(?:=\S{0,14}\ )?(?:NV|PG)PROF\ is
    |Dependency|NVLink|PCI|Data\ |Warp|PC\ |Kernel:|Available\ |"?Critical\ path|"","Device"
    |(?:[A-Z][A-Za-z ]{2,30}(?:\((?:excl|incl)\))?:\s*)?\d+(?:\.\d+)?%)""",
    re.IGNORECASE | re.VERBOSE,
)
_TELLING = (
    "PROF is profiling",
    "== Profiling result:",
    "== Profiling application:",
    "== Metric result:",
    "== Event result:",
    "== Event and metric result:",
    "Unified Memory profiling result:",
)
_SECTION = re.compile(r"\s*(?:==\d{1,10}==|={8}) (?:CPU profiling result|NVTX result|OpenACC \(|OpenMP \()")
_LABELLED_ROW = re.compile(r"\s*(?:GPU activities|API calls): +\d+\.\d+% +\d")


def sniff(sample: Sample) -> int:
    """How sure this is nvprof's: its own lines anywhere, or one of its table titles near the beginning."""
    if sample.is_binary or not sample.head:
        return 0
    if any(t in sample.text for t in _TELLING) or sample.contains(*_TELLING):
        return 90
    lines = [clean_line(line)[1] for line in sample.text.splitlines()[:4000]]
    if any(_SECTION.match(line) for line in lines):
        return 90
    if any(_is_header(line) or _LABELLED_ROW.match(line) for line in lines):
        return 60
    if other_tables.LISTING.search(sample.text):
        return 60
    return 55 if sample.contains("No kernels were profiled.", "Time(%)      Time     Calls       Avg") else 0


def _is_header(text: str) -> bool:
    if "(%)" not in text and "Start" not in text and "Invocations" not in text and "Avg Size" not in text:
        return False
    return any(h.match(text) for h in _HEADERS) or header_of(text) is not None


_HEADERS = (summaries.HEADER, traces.HEADER, counters.HEADER, other_tables.HEADER, cpu_samples.HEADER)


def read(path: Path, options: Options) -> Report:
    """Read all processes and runs of one file."""
    report = Report(str(path), tool="nvprof", format="nvprof-text")
    reading = _Reading(Sink(report))
    for number, rank, text in read_lines(path):
        reading.take(number, rank, text)
    reading.finish()
    _require_results(report)
    _explain_missing_kernels(report)
    _warn_of_cut_names(report)
    if "gpu_trace" in report.tables:
        from nsw.readers.timeline.process_phases import add_phases  # with numpy

        add_phases(report, options)
    if options.tables is not None:
        report.tables = {n: t for n, t in report.tables.items() if n in options.tables}
    return report


def _require_results(report: Report) -> None:
    """A file of nvprof's messages only, or of tables of which no line was understood, is not read."""
    facts = report.tables.get("facts", [])
    figures = any(len(t) for name, t in report.tables.items() if name != "facts")
    if figures or any(f["key"] != "command" for f in facts) or any(p.severity == "error" for p in report.problems):
        return
    report.error("contains only messages of nvprof, no results", fix=None if report.problems else AGAIN)


def _explain_missing_kernels(report: Report) -> None:
    """A process without kernels is a note beside others with kernels; calls without a launch need no hint."""
    names = {
        name: {row["name"] for row in report.tables.get(name, []) if isinstance(row, dict)}
        for name in ("api_summary", "openacc_summary")
    }
    kernels = (row for row in report.tables.get("gpu_summary", []) if isinstance(row, dict))
    has_kernels = any(row["kind"] == "kernel" for row in kernels)
    calls, directives = names.values()
    uses_gpu = any(map(_USES_GPU.match, calls)) and not any("Launch" in call for call in calls)
    on_host = any(map(_COMPUTES.match, directives)) and not any("launch" in directive for directive in directives)
    for at, problem in enumerate(report.problems):
        if _NO_KERNELS not in problem.message:
            continue
        if has_kernels:
            report.problems[at] = replace(problem, is_note=True)
        elif on_host:
            message = f"nvprof: {_NO_KERNELS}. (the OpenACC regions ran on the CPU)"
            fix = "compile them for the GPU (nvfortran or nvc -acc=gpu), and set no ACC_DEVICE_TYPE=host"
            report.problems[at] = replace(problem, message=message, fix=fix)
        elif uses_gpu:
            message = f"nvprof: {_NO_KERNELS}. (its CUDA calls launch no kernel)"
            report.problems[at] = replace(problem, message=message, fix=None)


_NO_KERNELS = "No kernels were profiled"
_COMPUTES = re.compile(r"acc_compute_construct")
_USES_GPU = re.compile(r"cu(?:da)?(?:Malloc|MemAlloc|Memcpy|Memset)")


def _warn_of_cut_names(report: Report) -> None:
    """Say that the lines were broken at some width, or cropped: nvprof prints names whole, and each call once."""
    names = {row["name"] for row in report.tables.get("gpu_summary", []) if isinstance(row, dict)}
    cut = {n for n in names if n.count("(") > n.count(")") or (n.count("<") > n.count(">") and "operator" not in n)}
    calls: set[tuple[object, ...]] = set()
    for row in report.tables.get("api_summary", []):
        if isinstance(row, dict):
            call = (*(row.get(c) for c in ("block", "rank", "pid", "device")), row["name"])
            cut |= {row["name"]} if call in calls else set()
            calls.add(call)
    if cut:
        report.warn(
            singular_or_count(len(cut), "a name is cut", "names are cut"), fix="copy the report again, with whole lines"
        )


class _Reading:
    """The streams of one file, by launcher rank."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._streams: dict[int | None, Stream] = {}

    def take(self, number: int, rank: int | None, text: str) -> None:
        """One line: a row, or what it says of the next ones."""
        stream = self._streams.get(rank)
        if stream is None:
            stream = self._streams[rank] = Stream(self._sink, rank)
        if stream.table is not None and stream.table.take(number, text):
            return
        if _TELLS.match(text) or "== " in text:
            self._take_stream_line(stream, number, text)

    def _take_stream_line(self, stream: Stream, number: int, text: str) -> None:
        if _RESULT_AND_MORE.search(text):
            self._sink.fault("a result without line breaks: its cells cannot be assigned to rows", number)
        message = _MESSAGE.match(text)
        if message is None and "== " in text and (behind := _MESSAGE_BEHIND.search(text)) is not None:
            message = _MESSAGE.match(behind[0])
        if message is not None:
            text = message["text"]
            if message["pid"] is not None:
                self._switch_process(stream, int(message["pid"]))
            if self._take_message(stream, number, text):
                return
        elif self._take_bare_message(stream, number, text.strip()):
            return
        if _RESULT.match(text):
            self._check_rows(stream)
            self._sink.new_block(stream)
        elif _NOTHING_PROFILED.match(text):
            if not stream.in_nvtx:  # else of one range
                self._sink.message(number, text.strip(), None)
        elif (title := _TITLE.match(text)) is not None:
            self._check_rows(stream)
            self._begin_section(stream, title["what"].lower())
        elif not (stream.in_nvtx and take_old_range(stream, number, text)) and not self._take_context(stream, text):
            self._begin_table(stream, number, text)

    def _switch_process(self, stream: Stream, pid: int) -> None:
        """A line of another process: what follows is of its block, when it has one."""
        if pid == stream.pid:
            return
        stream.pid = pid
        if pid in stream.blocks_by_pid and stream.blocks_by_pid[pid] != stream.block:
            stream.block = stream.blocks_by_pid[pid]
            stream.table = None

    def _takes_command(self, stream: Stream, number: int, text: str, *, is_bare: bool) -> bool:
        """Whether a line names the command of a process; a bare line names the process too."""
        if (profiling := _PROFILING.match(text)) is not None:
            pid = int(profiling[1]) if is_bare else stream.pid
            origin = {"block": self._sink.blocks, "rank": stream.rank, "pid": pid}
            self._sink.add("facts", {**origin, "key": "command", "text": profiling[2].strip()})
        elif _PROFILING_ANYHOW.match(text):
            self._sink.fault(_NO_PROCESS, number)
        else:
            return False
        return True

    def _take_message(self, stream: Stream, number: int, text: str) -> bool:
        """What nvprof says of itself; whether the line is done with."""
        if self._takes_command(stream, number, text, is_bare=False):
            return True
        if (severity := _SEVERITY.match(text)) is not None:
            if severity[2]:
                self._sink.message(number, severity[2], severity[1].lower())
            return True
        if text.startswith("Profiling application:"):
            return True
        if stream.in_nvtx and _NVTX.match(text):
            return False
        self._sink.message(number, text, None)
        return False

    def _take_bare_message(self, stream: Stream, number: int, text: str) -> bool:
        """What only nvprof says of itself, in a report that lost the marks before it; whether the line is done with."""
        if self._takes_command(stream, number, text, is_bare=True):
            return True
        if _BARE_WARNING.match(text):
            self._sink.message(number, text, None)
            return True
        return False

    def _begin_section(self, stream: Stream, title: str) -> None:
        """A title that says what the next table is of."""
        stream.table = cpu_samples.CpuTable(stream, title) if title.startswith("cpu ") else None
        other_tables.note_unread_section(self._sink, title)
        section = _SECTIONS.get(title) or next((s for s in ("openacc", "openmp") if s in title), "other")
        if section == "nvtx":
            stream.in_nvtx = True
            stream.nvtx_domain = stream.nvtx_range = None
        elif section in {"um", "metric", "other"}:
            stream.in_nvtx = False
        stream.section = section

    def _take_context(self, stream: Stream, text: str) -> bool:
        """The device, NVTX domain or range that the next table is of, or a figure on its own."""
        if (kernel := counters.KERNEL.match(text)) is not None:
            stream.kernel = kernel[1]  # some put it before the titles
            return True
        if (device := _DEVICE.match(text)) is not None:
            stream.set_device(device[1])
            if stream.section not in {"um", "metric"}:
                stream.section, stream.filled = None, set()  # --print-summary-per-gpu: a table for each
            return True
        if stream.in_nvtx and (nvtx := _NVTX.match(text)) is not None:
            if nvtx["what"] == "Domain":
                stream.nvtx_domain = nvtx_name(nvtx["name"])
            elif nvtx["what"] == "Range":
                stream.nvtx_range = nvtx["name"]
                stream.table = None
            return True
        return stream.section == "um" and other_tables.add_fact(stream, text)

    def _begin_table(self, stream: Stream, number: int, text: str) -> None:
        if (table := self._table_at(stream, number, text)) is not None:
            self._check_rows(stream)
            stream.table = table

    def _table_at(self, stream: Stream, number: int, text: str) -> RowTaker | None:
        if (section_table := other_tables.section_table(stream, text)) is not None:
            if not isinstance(section_table, other_tables.PassedOver):
                self._ensure_block(stream)
            return section_table
        if "(%)" in text:
            if cpu_samples.HEADER.match(text):
                return cpu_samples.CpuTable(stream, "")
            if match := summaries.HEADER.match(text):
                self._begin_summary(stream, typed=match[1] is not None)
                return summaries.SummaryTable(stream, typed=match[1] is not None, number=number)
        if traces.HEADER.match(text) or traces.COUNTER_HEADER.match(text):
            self._ensure_block(stream)
            return traces.TraceTable(stream, text, number)
        if match := counters.HEADER.match(text):
            self._ensure_block(stream)
            return counters.MetricTable(stream, match, number)
        if other_tables.HEADER.match(text):
            self._ensure_block(stream)
            return other_tables.MemoryTable(stream)
        if (header := header_of(text)) is not None:
            if header[0] == "summary":
                self._begin_summary(stream, typed="Type" in header[1])
            self._ensure_block(stream)
            return csv_table(stream, text, number, header)
        if stream.table is None and summaries.ROW.match(text) and stream.section not in {"cpu", "other"}:
            self._ensure_block(stream)  # rows that were pasted without their titles
            table = summaries.SummaryTable(stream, typed=False, number=number)
            table.take(number, text)
            return table
        return None

    def _ensure_block(self, stream: Stream) -> None:
        if stream.block is None:
            state_before = stream.section, stream.in_nvtx, stream.device, stream.device_name
            self._sink.new_block(stream)
            stream.section, stream.in_nvtx, stream.device, stream.device_name = state_before

    def _begin_summary(self, stream: Stream, *, typed: bool) -> None:
        """A title line of a summary: of the block that was announced, else of one of its own."""
        announced = stream.section is not None and not typed
        self._ensure_block(stream)
        if not announced and not stream.in_nvtx and stream.filled:
            section = stream.section
            self._sink.new_block(stream)
            stream.section = None if typed else section
        elif typed and not stream.in_nvtx:
            stream.section = None

    def _check_rows(self, stream: Stream) -> None:
        """A table whose titles are followed by no row was cut off."""
        table = stream.table
        if isinstance(table, cpu_samples.CpuTable):
            table.end()
        if getattr(table, "rows", 1) == 0:
            self._sink.fault("a table has titles but no rows", getattr(table, "number", 0))

    def finish(self) -> None:
        """Say what was cut off, and hand the tables over."""
        for stream in self._streams.values():
            self._check_rows(stream)
            for fact in self._sink.rows.get("facts", ()):  # a process names its command before its block begins
                if fact["key"] == "command" and fact["rank"] == stream.rank:
                    fact["block"] = stream.blocks_by_pid.get(fact["pid"], fact["block"])
        self._sink.finish()
