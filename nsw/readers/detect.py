"""Find the reader for a file and read it; nothing that a file holds raises an exception here."""

from __future__ import annotations

import gzip
import importlib
import lzma
import os
import re
import shlex
import sqlite3
import stat
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

from nsw import apart
from nsw.errors import LimitError, did_you_mean
from nsw.profilers.files_of_one_recording import files_to_read, recording_files_from
from nsw.readers import invariants, messages
from nsw.readers.model import SURE_OF_ALL, LackReason, Options, Reader, Report, Sample
from nsw.readers.registry import FORMATS, Format, load_package_formats
from nsw.readers.untrusted_files import (
    GZIP_MAGIC,
    SQLITE_MAGIC,
    XZ_MAGIC,
    open_sqlite_read_only,
    read_packed_report,
    unpack_beginning,
)
from nsw.resources import toml_data
from nsw.safe_files import open_to_read
from nsw.tables.exported import exported_tables_hint
from nsw.wording import first_names

if TYPE_CHECKING:
    from concurrent.futures import Future


CERTAIN = 100
_OF_ITERATIONS = frozenset({"iterations", "iteration_trace", "phase_summary"})
_NO_SIZES = "the sizes of NCCL's messages are in traces of PyTorch's profiler: `- host: {tool: torch}` records one"
_NO_ITERATIONS = "no iterations were found; of a timeline `--table phases` says why"
_MORE_MEMORY = "read it where there is more, or export it with fewer events (nsys: --filter-time)"


def read(path: Path, options: Options | None = None) -> Report:
    """Read one report of any known format.

    Returns:
        A report with tables, or with at least one problem of severity `error`.

    Raises:
        MemoryError: This is a process apart, and the file takes more memory than it has.
    """
    report = _read_with_detected_reader(path, options or Options())
    invariants.leave_out_broken_rows(report)
    invariants.warn_of_metrics_without_values(report)
    if options is None or options.wants("gpu_summary"):
        invariants.warn_of_launches_without_gpu_work(report)
    messages.warn_by_notes_that_explain(report)
    if report.tables:
        report.failed = messages.find_program_failure_line(path)
    if report.failed is not None:
        report.problems = [
            messages.without_hint_of_early_end(report.tool or "", problem) for problem in report.problems
        ]
    if "metrics" in report.tables:
        from nsw.readers.portable_metrics import add_portable_names, convert_metrics_to_one_unit

        if report.tool == "ncu":
            convert_metrics_to_one_unit(report)
        add_portable_names(report)
    if not any(len(t) for t in report.tables.values()) and not any(p.severity == "error" for p in report.problems):
        requested = options.tables if options else None
        if not requested:
            report.error("the file contains no results")
        else:
            fix_text = _NO_ITERATIONS if requested <= _OF_ITERATIONS else None
            fix_text = _NO_SIZES if requested == {"bandwidth"} else fix_text
            report.lack = LackReason.TABLES
            report.error(f"holds nothing of {', '.join(sorted(requested))}", fix=fix_text)
    return report


def _read_with_detected_reader(path: Path, options: Options, *, is_unpacked_copy: bool = False) -> Report:
    """Read a file; `is_unpacked_copy`: it was packed itself, and one that is packed twice is left alone."""
    report = Report(str(path))
    if (explanation := explain_special_file(path)) is not None:
        return _add_not_report_error(report, explanation)
    try:
        sample = Sample(path)
    except OSError as fault:
        return _add_not_report_error(report, explain_unopened_file(path, fault.strerror or str(fault)))
    if sample.size == 0 and not sample.is_folder:
        report.error("the file is empty", fix="the profiler or the copy was cut short: run or copy again")
        return report
    if not sample.is_folder and (explanation := explain_pointer_file(sample)) is not None:
        return _add_not_report_error(report, explanation)
    detected = detect_format(sample)
    if (
        detected is None
        and sample.head.startswith((GZIP_MAGIC, XZ_MAGIC))
        and not is_unpacked_copy
        and not is_archive_of_files(sample)
    ):
        unpacked = read_packed_report(
            path,
            options,
            lambda unpacked_path: detect_format(Sample(unpacked_path)) is not None,
            partial(_read_with_detected_reader, is_unpacked_copy=True),
        )
        if unpacked is not None:
            return unpacked
    if detected is None:
        if not sample.is_folder and (explanation := explain_stand_in_file(sample)) is not None:
            return _add_not_report_error(report, explanation)
        if (output := messages.nsys_profile_output(sample)) is not None:
            report.tool, report.problems, is_all_well = "nsys", *output
            report.lack = LackReason.OUTPUT if is_all_well else None
            return report
        if (spoken := messages.problems_if_only_messages(sample)) is not None:
            report.tool, report.problems = spoken
            report.error(f"contains only messages of {report.tool}, no results")
            return report
        report.lack = LackReason.UNKNOWN
        hint = exported_tables_hint(path) or "`nsw read --formats` lists what can be read"
        report.error("no known report format", fix=hint)
        for sentence in load_package_formats()[1]:
            report.warn(sentence, fix="update or uninstall that package")
        return report
    format_, reader = detected
    try:
        report = reader.read(path, options)
        add_other_reports(report, sample, format_, options)
    except Exception as fault:  # untrusted input: a reader's fault must spoil this file only
        if apart.out_of_memory(fault):
            if apart.is_isolated():  # the limit's: who set it names it
                raise
            report.error("there is not enough memory to read it", fix=_MORE_MEMORY)
        else:
            report.error(f"damaged or unknown variant of {format_.id}: {type(fault).__name__}: {fault}")
    report.tool = report.tool or format_.tool
    report.format = report.format or format_.id
    if not any(len(t) for t in report.tables.values()) and not sample.is_folder and not report.refused:
        _explain_stand_in(report, sample)
    return report


def _add_not_report_error(report: Report, explanation: NotReport) -> Report:
    report.error(explanation.message, fix=explanation.fix)
    report.lack = LackReason.POINTER if explanation.is_pointer else None
    return report


def _explain_stand_in(report: Report, sample: Sample) -> None:
    """Of a file that only its name makes a report, what it is says more than what of a report it lacks."""
    if (explanation := explain_stand_in_file(sample)) is not None and any(
        p.severity == "error" for p in report.problems
    ):
        report.problems = [p for p in report.problems if p.severity != "error"]
        report.error(explanation.message, fix=explanation.fix)


def detect_format(sample: Sample) -> tuple[Format, Reader] | None:
    """The format that recognises the sample with most certainty, or None.

    By its beginning if that suffices: to look through all of a long file takes longer than to read some.
    """
    sample.is_looked_through = False
    best = _surest_reader(sample)
    if (best is None or best[0] < SURE_OF_ALL) and sample.size > len(sample.head):
        sample.is_looked_through = True
        best = _surest_reader(sample)
    return (best[1], best[2]) if best else None


def _surest_reader(sample: Sample) -> _Sure | None:
    best = _surest_of_formats(FORMATS, sample, None)
    # to look for packages takes time; what is packed is shown to them once it is unpacked
    if (best is None or best[0] < SURE_OF_ALL) and not sample.head.startswith((GZIP_MAGIC, XZ_MAGIC)):
        best = _surest_of_formats(load_package_formats()[0], sample, best)
    return best


_Sure: TypeAlias = tuple[int, Format, Reader]


def _surest_of_formats(formats: Iterable[Format], sample: Sample, best: _Sure | None) -> _Sure | None:
    """The surest reader of these and of `best`."""
    is_packed = sample.head.startswith(GZIP_MAGIC)
    head = sample.text.encode() if sample.is_numbered else unpack_beginning(sample.head)
    for format_ in formats:
        if is_packed and not format_.unpacks:  # asked once it is unpacked
            continue
        if format_.folder != sample.is_folder or not format_.matches_beginning_or_suffix(head, sample.suffix):
            continue
        if best is not None and format_.max_certainty <= best[0]:
            continue
        reader = cast("Reader", importlib.import_module(format_.module))
        try:
            sure = reader.sniff(sample)
        except Exception:  # noqa: BLE001, S112  what one reader cannot look at, another may know
            continue
        if sure > (best[0] if best else 0):
            best = (sure, format_, reader)
        # nobody after it can be surer by looking through all of a long file
        sample.is_looked_through = sample.is_looked_through and (best is None or best[0] < SURE_OF_ALL)
        if sure >= CERTAIN:  # a magic number: the other readers need not even be loaded
            break
    return best


_RESULTS: Final = 75  # how sure a reader is at least of what has tables
_NO_RESULT: Final = "facts"
_OF_WHOLE_RUNS: Final = frozenset({"vtune", "aps"})  # whose facts are results


def add_other_reports(report: Report, sample: Sample, chosen: Format, options: Options) -> None:
    """Add the tables of every other tool whose report is in the same file; warn of each, report those left out.

    Tables of two tools are not mixed: rows of the same table would number their blocks alike.

    Args:
        report: The report read so far; tables and problems are added to it.
        sample: The file. Other reports are looked for in its head (64 KiB) only.
        chosen: The format in which `report` was read.
        options: What is asked of readers.
    """
    if not chosen.words:
        return
    sample.is_looked_through = False
    for format_ in FORMATS:
        if format_.id == chosen.id or not any(word in sample.text for word in format_.words):
            continue
        reader = cast("Reader", importlib.import_module(format_.module))
        if reader.sniff(sample) < _RESULTS:
            continue
        other_report = reader.read(sample.path, options)
        names = [name for name, table in other_report.tables.items() if len(table) and name != _NO_RESULT]
        facts = other_report.tables.get(_NO_RESULT, [])
        if not names and not (len(facts) and format_.id in _OF_WHOLE_RUNS):
            continue
        if any(len(report.tables.get(name, ())) for name in names):
            report.error(
                f"holds a report of {format_.tool} ({format_.id}) too, which is not read",
                fix="put each report into a file of its own",
            )
            continue
        report.warn(f"holds a report of {format_.tool} too: its tables are {', '.join(sorted(names or [_NO_RESULT]))}")
        report.tables |= {name: other_report.tables[name] for name in names}
        report.problems += other_report.problems
        if len(facts):
            report.tables[_NO_RESULT] = [*report.tables.get(_NO_RESULT, []), *facts]


_AHEAD: Final = 4  # files a worker holds beyond the one that is asked for: bounds what waits in memory
# What one process takes, roughly; from _WORTHWHILE on the start of others (half a second each) pays.
_SECONDS_A_FILE: Final = 0.005
_BYTES_A_SECOND: Final = 10e6
_WORTHWHILE: Final = 2.0
_SMALL: Final = 8 << 20  # bytes in all: what one process reads sooner than another starts


def read_many(paths: Sequence[Path], options: Options | None = None, workers: int | None = None) -> Iterator[Report]:
    """Read files one after the other as they are asked for.

    Args:
        paths: The files.
        options: What is asked of the readers.
        workers: How many processes with limits; 0: this one reads. By default one a core for what takes long, one for
            other files that are not small or where limits were asked for, none for small ones. A process apart reads
            itself.
    """
    chosen = options or Options()
    count = _worker_count(paths, requested=chosen.limits != apart.Limits()) if workers is None else workers
    if count == 0 or not apart.is_possible():
        for path in paths:
            yield read(path, chosen)
        return
    at = 0
    try:
        while at < len(paths):
            try:
                for report in _read_in_pool(paths[at:], chosen, count):
                    yield report
                    at += 1
                if at < len(paths):  # the pool broke over this file, or over one that was read beside it
                    yield _read_in_own_process(paths[at], chosen)
                    at += 1
            except LimitError as fault:  # of memory little may be left there: the next file has another process
                yield report_of_limit_error(paths[at], fault)
                at += 1
    except apart.NoPoolError:
        for path in paths[at:]:
            yield read(path, chosen)


def takes_long_to_read(paths: Sequence[Path]) -> bool:
    """Whether reading takes so long that several processes, and a progress bar, are worth it."""
    seconds = _SECONDS_A_FILE * len(paths)
    for path in paths:
        if seconds >= _WORTHWHILE:
            break
        seconds += report_bytes(path) / _BYTES_A_SECOND
    return len(paths) > 1 and seconds >= _WORTHWHILE


def report_bytes(path: Path) -> int:
    """The bytes of a file with the later ranges of its recording, or of the files of a folder that is a report."""
    try:
        return sum(f.stat().st_size for f in (path.iterdir() if path.is_dir() else recording_files_from(path)))
    except OSError:
        return 0  # what is wrong with it is reported when it is read


def _worker_count(paths: Sequence[Path], *, requested: bool) -> int:
    if takes_long_to_read(paths):
        return len(os.sched_getaffinity(0))
    return int(requested or sum(map(report_bytes, paths)) >= _SMALL)


def _read_in_pool(paths: Sequence[Path], options: Options, workers: int) -> Iterator[Report]:
    """Reports from a pool of processes until one of them dies.

    Raises:
        LimitError: The next file took too much.
    """
    from concurrent.futures.process import BrokenProcessPool

    waiting: list[Future[Report]] = []
    rest = iter(paths)
    with apart.isolated_pool(workers) as processes:
        try:
            for path in rest:
                with apart.starting_processes():
                    waiting.append(processes.submit(_read_within_limits, path, options))
                if len(waiting) > workers * _AHEAD:
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()
        except BrokenProcessPool:
            return


def _read_in_own_process(path: Path, options: Options) -> Report:
    """Read a file in a process of its own, which may die of it."""
    return apart.run_isolated(
        read, path, options, subject=f"reading {path}", size=report_bytes(path), limits=options.limits
    )


def _read_within_limits(path: Path, options: Options) -> Report:
    """Read a file in a process apart that may be there for others too."""
    with apart.with_limits(f"reading {path}", options.limits.for_bytes(report_bytes(path))):
        return read(path, options)


def report_of_limit_error(path: Path, fault: LimitError) -> Report:
    """The report of a file that could not be read within its limits."""
    report = Report(str(path))
    report.error(fault.message, fix=fault.hint)
    return report


@dataclass(slots=True)
class ReportSearch:
    """One search: the commands and Python look for reports in the same way.

    Attributes:
        folders: Folders that were named and are no reports themselves.
        searched: The files below them that nobody named.
        reports: How many of these were reports, or were meant to be.
    """

    folders: list[Path] = field(default_factory=list)
    searched: set[str] = field(default_factory=set)
    reports: int = 0

    def find_files_to_read(self, paths: Sequence[Path]) -> Iterator[Path]:
        """What to read: the named files; of a folder that is no report itself, every file below it, once."""
        names = {str(path) for path in paths}
        for path in paths:
            if not path.is_dir() or is_report_folder(path):
                yield path
                continue
            self.folders.append(path)
            for file in find_files_and_report_folders(path):
                if str(file) not in names and str(file) not in self.searched:
                    self.searched.add(str(file))
                    yield file

    def drop_unrecognised_reports(self, reports: Iterable[Report]) -> Iterator[Report]:
        """The reports without those of searched files that no profiler wrote; broken ones are among them."""
        for report in reports:
            is_other = report.lack is LackReason.OUTPUT or (report.tool is None and not is_meant_as_report(report))
            if report.path in self.searched and is_other:
                continue
            self.reports += report.path in self.searched
            yield report


# nothing but profilers writes files of these names
_REPORTS = (
    ".nsys-rep", ".qdrep", ".qdstrm", ".ncu-rep", ".nsight-cuprof-report", ".nvvp", ".nvprof", ".pstats",
    ".pt.trace.json", ".pt.trace.json.gz", "perf.data", ".vtune", ".amplxe",
)  # fmt: skip
# others write such files too: they are meant as reports while they cannot be opened as what they are named
_DATABASES = (".sqlite", ".sqlite3")
_PACKED_ENDS = (".sqlite.gz", ".json.gz", ".sqlite.xz", ".json.xz")
_MAYBE = (*_DATABASES, *_PACKED_ENDS, ".prof", ".cprof")
_WRITTEN = (*_MAYBE, ".json", ".csv", ".txt")  # what a pointer may stand for


@cache
def _patterns_of_other_files() -> tuple[tuple[re.Pattern[bytes], str, str], ...]:
    """What is in files of other profilers, which no reader reads; what each is, and what to do with it."""
    rows = toml_data("readers/data/other_files.toml")["file"]
    return tuple((re.compile(row["pattern"].encode(), re.MULTILINE), row["meaning"], row["fix"]) for row in rows)


def _file_of_other_profiler(sample: Sample) -> NotReport | None:
    """What a file of another profiler is, and what to do; None where it is none that nsw knows."""
    is_database = sample.head.startswith(SQLITE_MAGIC)
    head = _sqlite_create_statements(sample) if is_database else sample.head.replace(b"\r\n", b"\n")
    for pattern, meaning, fix in _patterns_of_other_files():
        if pattern.search(head):
            return NotReport(meaning, fix.replace("{path}", shlex.quote(str(sample.path))))
    return None


def _sqlite_create_statements(sample: Sample) -> bytes:
    """The statements that made a database's tables and views, as text; nothing where it cannot be read."""
    try:
        with closing(open_sqlite_read_only(sample.path)) as database:
            database.text_factory = bytes
            rows = database.execute("SELECT sql FROM sqlite_master LIMIT ?", (_MAX_STATEMENTS,)).fetchall()
    except (sqlite3.Error, UnicodeDecodeError):  # its own message names what is damaged
        return b""
    return b"\n".join(sql[:4000] for (sql,) in rows if isinstance(sql, bytes))


def is_meant_as_report(report: Report) -> bool:
    """Whether a file that no reader recognised was to be a report, by its name: it is broken then, and not other."""
    name = report.path.lower()
    if name.endswith(_REPORTS):
        return True
    if report.lack is LackReason.POINTER:
        return name.endswith(_WRITTEN)
    return name.endswith(_MAYBE) and not _opens_as_its_suffix_says(report)


def _opens_as_its_suffix_says(report: Report) -> bool:
    """Whether a file of an ambiguous name is what that says, as far as its beginning tells: another program's."""
    path = Path(report.path)
    name = path.name.lower()
    try:
        if name.endswith(_PACKED_ENDS):
            unpacker = lzma.LZMAFile if name.endswith(".xz") else partial(gzip.GzipFile, None, "rb", 9)
            with open_to_read(path) as raw, unpacker(raw) as packed:
                begin = packed.read(1 << 20)
            return bool(begin) and (".sqlite" not in name or begin.startswith(SQLITE_MAGIC))
        if name.endswith(_DATABASES):
            with open_to_read(path) as file:
                return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC and _answers_sqlite_query(path)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, sqlite3.Error):
        return False
    return report.lack is LackReason.UNKNOWN


def _answers_sqlite_query(path: Path) -> bool:
    with closing(open_sqlite_read_only(path)) as database:
        return database.execute("SELECT count(*) FROM sqlite_master").fetchone() is not None


def is_report_folder(folder: Path) -> bool:
    """Whether the folder is itself a report."""
    try:
        return detect_format(Sample(folder)) is not None
    except OSError:
        return False


def find_files_and_report_folders(folder: Path) -> Iterator[Path]:
    """Every file below a folder, in order of their names, and folders that are reports instead of their files.

    Hidden files and folders are passed over; links to folders are not followed. Files are not looked into:
    whether one is a report is known when it is read.
    """
    for walked, folders, files in os.walk(folder):
        directory = Path(walked)
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in [f for f in folders if is_report_folder(directory / f)]:
            folders.remove(name)
            yield directory / name
        # of a report and the pages exported from it, one; each row is wanted once
        file_names = (
            name for name, part in files_to_read(f for f in files if not f.startswith(".")).items() if part.only is None
        )
        paths = (directory / name for name in file_names)
        yield from (f for f in paths if f.is_file() or _is_dangling_report_link(f))


def _is_dangling_report_link(file: Path) -> bool:
    """Whether it is a link whose report is not here, as git-annex leaves them."""
    return file.name.lower().endswith((*_REPORTS, *_WRITTEN)) and file.is_symlink() and not file.exists()


_NAMES_IN_FIX: Final = 8
_MAX_STATEMENTS: Final = 200  # of a database, that are looked at
_GET = "run `git annex get` on it"
_LFS = b"version https://git-lfs.github.com/spec/v1"
_LFS_SIZE = re.compile(rb"^size (\d{1,15})$", re.MULTILINE)
_ANNEX = re.compile(rb"\A(?:\.\./)*(?:/annex/objects/|\.git/annex/objects/)")
_HTML = re.compile(r"\s*(?:<!doctype html|<html[\s>])", re.IGNORECASE)
_OF_VTUNE = (".vtune", ".amplxe")
_OF_NSW = re.compile(r"(?m)\A(?:#[^\n]*\n|\s)*nsw: \d+$")
_TITLE = re.compile(r"<title[^>]*>\s*([^<]{1,120})", re.IGNORECASE)
_REPORT_TAGS = re.compile(r"application performance snapshot|aps|vtune|nsight", re.IGNORECASE)

_CRASHED = re.compile(r"\s*(Segmentation fault|Bus error|Killed|Aborted|Illegal instruction)(?: \(core dumped\))?\s*")

# First bytes -> what it is, and the command that unpacks it.
_PACKED = (
    (GZIP_MAGIC, "gzip", "gunzip -k"),
    (b"BZh", "bzip2", "bunzip2 -k"),
    (XZ_MAGIC, "xz", "unxz -k"),
    (b"\x28\xb5\x2f\xfd", "zstd", "unzstd"),
    (b"7z\xbc\xaf\x27\x1c", "7z", "7z x"),
)


_ZIPPED = (b"PK\x03\x04", b"PK\x05\x06")
_TAR_AT, _TAR = 257, b"ustar"
_TAR_NAMES = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst", ".txz")
_ARCHIVES = (*_TAR_NAMES, ".tar", ".zip")


class NotReport(NamedTuple):
    """Why a file is no report, and what to do."""

    message: str
    fix: str | None
    is_pointer: bool = False  # to a file that is elsewhere


def explain_pointer_file(sample: Sample) -> NotReport | None:
    """Whether it only points to where the file is, whatever its name: such files are no report of any format."""
    head = sample.head
    if head.startswith(_LFS):
        size = _LFS_SIZE.search(head[:1024])
        size_text = f" of {int(size[1]):,} bytes" if size else ""
        message = f"a Git LFS pointer to a file{size_text}, not the file itself"
        return NotReport(message, "run `git lfs pull` in its repository", is_pointer=True)
    if _ANNEX.match(head):
        return NotReport("a git-annex pointer, not the file itself", _GET, is_pointer=True)
    return None


def explain_unopened_file(path: Path, reason: str) -> NotReport:
    """Why a file cannot be opened; of a link that leads nowhere where it leads."""
    if not path.is_symlink() or path.exists():
        names = sorted(other.name for other in path.parent.glob("*"))
        others = [name for name in names if name.endswith(path.suffix)]
        listing = f"files there: {first_names(others, _NAMES_IN_FIX)}" if others else None
        fix = did_you_mean(path.name, names) or listing
        return NotReport(f"cannot be opened: {reason}", None if path.name in names else fix)
    target = os.readlink(path)  # noqa: PTH115  its text, which need not be a path here
    if ".git/annex/objects/" in target:
        return NotReport("a git-annex link to a file that is not here", _GET, is_pointer=True)
    return NotReport(f"a link to {target}, which is not there", "copy the file here, or correct the link")


def explain_special_file(path: Path) -> NotReport | None:
    """What it is when it is neither a file nor a folder: to open such a thing may never end."""
    try:
        mode = path.stat().st_mode
    except OSError:  # reported where it is opened
        return None
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    if stat.S_ISFIFO(mode):
        return NotReport("a pipe, not a file", "give what comes out of it to nsw: `... | nsw read -`")
    return NotReport(f"a {'socket' if stat.S_ISSOCK(mode) else 'device'}, not a file", None)


def explain_stand_in_file(sample: Sample) -> NotReport | None:
    """What the file is, when it is one of the usual stand-ins for a report; None when it may be a report."""
    head = sample.head
    if sample.suffix in _OF_VTUNE:
        folder = shlex.quote(str(sample.path.parent))
        command = f"`vtune -report hotspots -result-dir {folder} -format csv -report-output hotspots.csv`"
        return NotReport("a result of VTune, which only VTune opens", f"{command}, and so with `-report summary`")
    if (pointing := explain_pointer_file(sample)) is not None:
        return pointing
    if not sample.is_binary and (match := _HTML.match(sample.text)) is not None:
        title = _TITLE.search(sample.text, match.end(), match.end() + 4096)
        if title is None or not _REPORT_TAGS.search(title[1]):
            title_text = f" ({title[1].strip()})" if title else ""
            return NotReport(f"a web page{title_text}, not a report", "download the file itself (on GitHub: Raw)")
    if not sample.is_binary and (match := _CRASHED.fullmatch(sample.text)) is not None:
        return NotReport(f"no result: the program that should have written it ended with '{match[1]}'", "run it again")
    if not sample.is_binary and _OF_NSW.search(sample.text):
        return NotReport(
            "a recipe or a sites file of nsw, not a report",
            f"`nsw plan {shlex.quote(str(sample.path))}` shows its plan",
        )
    if (other := _file_of_other_profiler(sample)) is not None:
        return other
    if is_archive_of_files(sample):
        return NotReport("an archive of files", f"unpack it, and read the folder: {_unpack_commands(sample)}")
    if head.startswith(GZIP_MAGIC) and (wrong := _gzip_fault(head, sample.size)) is not None:
        return NotReport(wrong, "the copy was cut short or changed: copy it again")
    for magic, kind, command in _PACKED:
        if head.startswith(magic):
            return NotReport(f"packed with {kind}", f"unpack it first: {command} {shlex.quote(str(sample.path))}")
    if head and not head.strip(b"\0"):
        return NotReport("its first 64 KiB are zero bytes: a copy or a write that did not end", "copy it again")
    return None


def is_archive_of_files(sample: Sample) -> bool:
    """Whether it is, or by its name holds, several files in one."""
    head, name = sample.head, sample.path.name.lower()
    return head.startswith(_ZIPPED) or head[_TAR_AT:].startswith(_TAR) or name.endswith(_TAR_NAMES)


def _unpack_commands(sample: Sample) -> str:
    """The commands that unpack an archive into a folder of its own and read that."""
    archive = str(sample.path)
    folder = next((archive[: -len(end)] for end in _ARCHIVES if archive.lower().endswith(end)), f"{archive}.d")
    packed, into = shlex.quote(archive), shlex.quote(folder)
    zipped = sample.head.startswith(_ZIPPED)
    unpack = f"unzip {packed} -d {into}" if zipped else f"mkdir {into} && tar -xf {packed} -C {into}"
    return f"`{unpack} && nsw read {into}`"


def _gzip_fault(head: bytes, size: int) -> str | None:
    """What is wrong with packed data of which not even the first byte comes out."""
    try:
        first_byte = zlib.decompressobj(wbits=31).decompress(head, 1)
    except zlib.error as fault:
        return f"packed with gzip, and damaged: {fault}"
    if first_byte or size > len(head):
        return None
    return "packed with gzip, and cut short: nothing can be unpacked from it"
