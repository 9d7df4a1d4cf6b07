"""Files that are no reports though they carry a report's name: what they are, and how to get the report."""

from __future__ import annotations

import os
import re
import shlex
import stat
import zlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from nsw.readers.model import Sample

_GET = "run `git annex get` on it"
_LFS = b"version https://git-lfs.github.com/spec/v1"
_LFS_SIZE = re.compile(rb"^size (\d{1,15})$", re.MULTILINE)
_ANNEX = re.compile(rb"\A(?:\.\./)*(?:/annex/objects/|\.git/annex/objects/)")
_HTML = re.compile(r"\s*(?:<!doctype html|<html[\s>])", re.IGNORECASE)
_OF_VTUNE = (".vtune", ".amplxe")
_PROFILE_LOG = re.compile(
    r"^(?:# (?:CUDA|OPENCL)_PROFILE_LOG_VERSION |(?:[ \t]*\d+[ \t]+)?method=\[ \S+ \] gputime=\[)", re.MULTILINE
)
_OF_NSW = re.compile(r"(?m)\A(?:#[^\n]*\n|\s)*nsw: \d+$")
_TITLE = re.compile(r"<title[^>]*>\s*([^<]{1,120})", re.IGNORECASE)
_REPORT_TAGS = re.compile(r"application performance snapshot|aps|vtune|nsight", re.IGNORECASE)

# the source page of ncu as text: titles that are wrapped letter by letter over columns of figures
_SOURCE_TEXT = re.compile(
    r"^(?:Kernel|Function|File) Name {2,}\S.*\n-+ [- ]+\n(?:Address|#|Line No) +Source\b", re.MULTILINE
)
_CRASHED = re.compile(r"\s*(Segmentation fault|Bus error|Killed|Aborted|Illegal instruction)(?: \(core dumped\))?\s*")

# Exports of nsys that are not read: what is in their first bytes.
_NSYS_EXPORTS = (
    (re.compile(rb'\A\{"data":\["\[Unknown\]"'), "JSON"),
    (re.compile(rb'\Adata: "\[Unknown\]"'), "text"),
    (re.compile(rb'\A\{\s*"VmSystemInformation"'), "info"),
    (re.compile(rb"\A\x89HDF(?s:.)*StringIds"), "HDF5"),
    (re.compile(rb"\A\xff{4}(?s:.){0,400}table_desc(?s:.)*StringIds"), "Arrow"),
)

_PERF = b"PERFILE2"
_GZIP = b"\x1f\x8b"
# First bytes -> what it is, and the command that unpacks it.
_PACKED = (
    (_GZIP, "gzip", "gunzip"),
    (b"BZh", "bzip2", "bunzip2"),
    (b"\xfd7zXZ\x00", "xz", "unxz"),
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


def pointer(sample: Sample) -> NotReport | None:
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


def unopened(path: Path, reason: str) -> NotReport:
    """Why a file cannot be opened; of a link that leads nowhere where it leads."""
    if not path.is_symlink() or path.exists():
        return NotReport(f"cannot be opened: {reason}", None)
    target = os.readlink(path)  # noqa: PTH115  its text, which need not be a path here
    if ".git/annex/objects/" in target:
        return NotReport("a git-annex link to a file that is not here", _GET, is_pointer=True)
    return NotReport(f"a link to {target}, which is not there", "copy the file here, or correct the link")


def special(path: Path) -> NotReport | None:
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


def explain(sample: Sample) -> NotReport | None:
    """What the file is, when it is one of the usual stand-ins for a report; None when it may be a report."""
    head = sample.head
    if sample.suffix in _OF_VTUNE:
        folder = shlex.quote(str(sample.path.parent))
        command = f"`vtune -report hotspots -result-dir {folder} -format csv -report-output hotspots.csv`"
        return NotReport("a result of VTune, which only VTune opens", f"{command}, and so with `-report summary`")
    if (pointing := pointer(sample)) is not None:
        return pointing
    if not sample.is_binary and (match := _HTML.match(sample.text)) is not None:
        title = _TITLE.search(sample.text, match.end(), match.end() + 4096)
        if title is None or not _REPORT_TAGS.search(title[1]):
            title_text = f" ({title[1].strip()})" if title else ""
            return NotReport(f"a web page{title_text}, not a report", "download the file itself (on GitHub: Raw)")
    if not sample.is_binary and _PROFILE_LOG.search(sample.text):
        return NotReport(
            "a log of CUDA's profiler before nvprof (COMPUTE_PROFILE=1, until CUDA 7.5), which is not read",
            "profile again with nvprof or nsys",
        )
    if not sample.is_binary and _SOURCE_TEXT.search(sample.text):
        return NotReport(
            "ncu's source page as text, which is not read", "ncu --import REPORT --page source --csv > source.csv"
        )
    if not sample.is_binary and (match := _CRASHED.fullmatch(sample.text)) is not None:
        return NotReport(f"no result: the program that should have written it ended with '{match[1]}'", "run it again")
    if not sample.is_binary and _OF_NSW.search(sample.text):
        return NotReport(
            "a recipe or a sites file of nsw, not a report",
            f"`nsw plan {shlex.quote(str(sample.path))}` shows its plan",
        )
    for words, kind in _NSYS_EXPORTS:
        if words.search(head):
            return NotReport(
                f"an export of nsys as {kind}, which is not read", "export it with `nsys export --type sqlite`"
            )
    if head.startswith(_PERF):
        data = shlex.quote(str(sample.path))
        return NotReport(
            "a recording of Linux perf, whose functions only the machine that made it can name",
            f"print it there: `perf report --stdio --header -g none -i {data} > {data}.txt`",
        )
    if is_archive(sample):
        return NotReport("an archive of files", f"unpack it, and read the folder: {_unpack(sample)}")
    if head.startswith(_GZIP) and (wrong := _bad_gzip(head, sample.size)) is not None:
        return NotReport(wrong, "the copy was cut short or changed: copy it again")
    for magic, kind, command in _PACKED:
        if head.startswith(magic):
            return NotReport(f"packed with {kind}", f"unpack it first: {command} {shlex.quote(str(sample.path))}")
    if head and not head.strip(b"\0"):
        return NotReport("its first 64 KiB are zero bytes: a copy or a write that did not end", "copy it again")
    return None


def is_archive(sample: Sample) -> bool:
    """Whether it is, or by its name holds, several files in one."""
    head, name = sample.head, sample.path.name.lower()
    return head.startswith(_ZIPPED) or head[_TAR_AT:].startswith(_TAR) or name.endswith(_TAR_NAMES)


def _unpack(sample: Sample) -> str:
    """The commands that unpack an archive into a folder of its own and read that."""
    archive = str(sample.path)
    folder = next((archive[: -len(end)] for end in _ARCHIVES if archive.lower().endswith(end)), f"{archive}.d")
    packed, into = shlex.quote(archive), shlex.quote(folder)
    zipped = sample.head.startswith(_ZIPPED)
    unpack = f"unzip {packed} -d {into}" if zipped else f"mkdir {into} && tar -xf {packed} -C {into}"
    return f"`{unpack} && nsw read {into}`"


def _bad_gzip(head: bytes, size: int) -> str | None:
    """What is wrong with packed data of which not even the first byte comes out."""
    try:
        first_byte = zlib.decompressobj(wbits=31).decompress(head, 1)
    except zlib.error as fault:
        return f"packed with gzip, and damaged: {fault}"
    if first_byte or size > len(head):
        return None
    return "packed with gzip, and cut short: nothing can be unpacked from it"
