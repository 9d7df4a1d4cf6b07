"""Files that are no reports though they carry a report's name: what they are, and how to get the report."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from nsw.readers.model import Sample

_LFS = b"version https://git-lfs.github.com/spec/v1"
_LFS_SIZE = re.compile(rb"^size (\d{1,15})$", re.MULTILINE)
_ANNEX = re.compile(rb"\A(?:\.\./)*(?:/annex/objects/|\.git/annex/objects/)")
_HTML = re.compile(r"\s*(?:<!doctype html|<html[\s>])", re.IGNORECASE)
_PROFILE_LOG = re.compile(
    r"^(?:# (?:CUDA|OPENCL)_PROFILE_LOG_VERSION |(?:[ \t]*\d+[ \t]+)?method=\[ \S+ \] gputime=\[)", re.MULTILINE
)
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

# First bytes -> what it is, and the command that unpacks it.
_PACKED = (
    (b"\x1f\x8b", "gzip", "gunzip"),
    (b"BZh", "bzip2", "bunzip2"),
    (b"\xfd7zXZ\x00", "xz", "unxz"),
    (b"\x28\xb5\x2f\xfd", "zstd", "unzstd"),
    (b"7z\xbc\xaf\x27\x1c", "7z", "7z x"),
)


class NotReport(NamedTuple):
    """Why a file is no report, and what to do."""

    message: str
    fix: str


def explain(sample: Sample) -> NotReport | None:
    """What the file is, when it is one of the usual stand-ins for a report; None when it may be a report."""
    head = sample.head
    if head.startswith(_LFS):
        size = _LFS_SIZE.search(head[:1024])
        what = f" of {int(size[1]):,} bytes" if size else ""
        return NotReport(
            f"a Git LFS pointer to a file{what}, not the file itself", "run `git lfs pull` in its repository"
        )
    if _ANNEX.match(head):
        return NotReport("a git-annex pointer, not the file itself", "run `git annex get` on it")
    if not sample.is_binary and (found := _HTML.match(sample.text)) is not None:
        title = _TITLE.search(sample.text, found.end(), found.end() + 4096)
        if title is None or not _REPORT_TAGS.search(title[1]):
            named = f" ({title[1].strip()})" if title else ""
            return NotReport(f"a web page{named}, not a report", "download the file itself (on GitHub: Raw)")
    if not sample.is_binary and _PROFILE_LOG.search(sample.text):
        return NotReport(
            "a log of CUDA's profiler before nvprof (COMPUTE_PROFILE=1, until CUDA 7.5), which is not read",
            "profile again with nvprof or nsys",
        )
    if not sample.is_binary and _SOURCE_TEXT.search(sample.text):
        return NotReport(
            "ncu's source page as text, which is not read", "ncu --import REPORT --page source --csv > source.csv"
        )
    if not sample.is_binary and (found := _CRASHED.fullmatch(sample.text)) is not None:
        return NotReport(f"no result: the program that should have written it ended with '{found[1]}'", "run it again")
    for words, what in _NSYS_EXPORTS:
        if words.search(head):
            return NotReport(
                f"an export of nsys as {what}, which is not read", "export it with `nsys export --type sqlite`"
            )
    for magic, what, command in _PACKED:
        if head.startswith(magic):
            return NotReport(f"packed with {what}", f"unpack it first: {command} {sample.path.name}")
    if head and not head.strip(b"\0"):
        return NotReport("its first 64 KiB are zero bytes: a copy or a write that did not end", "copy it again")
    return None
