"""A profiler's command line in a script -> the pass of a recipe that starts it so.

What nsw writes itself (names of reports, formats of output) is left out, other options are passed on as they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

from nsw.convert.shell_script import Piece, Text
from nsw.recipe.passes import TraceDomain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["PassWords", "parse_pass", "reads_reports"]

_OWN_REPORT: Final = "nsw names the report itself"
_OWN_PAGES: Final = "nsw exports the report's pages itself"
_NOT_KNOWN: Final = "only the job knows its value"
_PROFILERS: Final = {
    "nsys": "nsys", "ncu": "ncu", "nv-nsight-cu-cli": "ncu", "nvprof": "nvprof", "vtune": "vtune", "amplxe-cl": "vtune",
    "aps": "aps",
}  # fmt: skip
_READING: Final = {  # words behind which a profiler measures nothing
    "nsys": r"stats|export|analyze|recipe|status|--version|-v",
    "ncu": r"-i|--import(=.*)?|--query-metrics|--list-\w+|--version|-v",
    "nvprof": r"-i|--import-profile(=.*)?|--query-(metrics|events)|--version|-V",
    "vtune": r"--?(report|R|finalize|archive|import|help|version)(=.*)?",
    "aps": r"--report(=.*)?|-s|--version",
}
_FLAGS: Final = {  # options without a value; of vtune and aps those with one
    "nsys": "--help --version -h -v",
    "ncu": "-f --force-overwrite --csv --nvtx --quiet --verbose --call-stack --print-fp --print-rule-details"
    " --disable-extra-suffixes --support-32bit --open-in-ui",
    "nvprof": "-f --force-overwrite --csv -s --print-summary --print-gpu-trace --print-api-trace --print-gpu-summary"
    " --print-api-summary --profile-child-processes --profile-all-processes --analysis-metrics --quiet -q"
    " --print-summary-per-gpu --print-openacc-summary --print-openacc-trace --print-openmp-summary"
    " --print-nvlink-topology --print-pci-topology --dependency-analysis",
}
_VALUED: Final = {
    "vtune": "-c -collect -r -result-dir -knob -strategy -data-limit -d -duration -finalization-mode -search-dir"
    " -source-search-dir -app-working-dir -target-duration-type -mrte-mode -resume-after -cpu-mask -ring-buffer"
    " -target-process -target-pid -loop-mode -inline-mode -custom-collector",
    "aps": "-r --result-dir -c --collection-mode",
}


@dataclass(slots=True)
class PassWords:
    """What a profiler's command line asks for.

    Attributes:
        tool: The profiler.
        path: How the script calls it.
        kind: The kind of the pass.
        fields: The keys of the pass, without `tool` and `options`.
        options: What is passed on.
        left_out: Options that nsw writes itself, each with the reason.
        unknown: Options that are not carried over, each with the reason.
        program: The words behind it.
    """

    tool: str
    path: str
    kind: str = "timeline"
    fields: dict[str, Any] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    unknown: list[tuple[str, str]] = field(default_factory=list)
    program: list[Text] = field(default_factory=list)

    def keep(self, option: _Option) -> None:
        """Pass an option on, if it is the same whenever it is run."""
        words = option.words
        if None in words:
            self.unknown.append((option.text_shown, _NOT_KNOWN))
        else:
            self.options += [word for word in words if word is not None]


class _Option(NamedTuple):
    """An option with its value, joined to it by `=` or the next word."""

    name: str
    value: Text | None
    joined: bool = False

    @property
    def text(self) -> str:
        """The value where it is known; empty where there is none."""
        return (self.value.literal or "") if self.value is not None else ""

    @property
    def words(self) -> list[str | None]:
        if self.value is None:
            return [self.name]
        if self.joined:
            return [None if self.value.literal is None else f"{self.name}={self.value.literal}"]
        return [self.name, self.value.literal]

    @property
    def text_shown(self) -> str:
        if self.value is None:
            return self.name
        return f"{self.name}{'=' if self.joined else ' '}{self.value.source_text}"


def _tool(words: Sequence[Text]) -> str | None:
    first = words[0].literal if words else None
    return _PROFILERS.get(PurePosixPath(first).name) if first else None


def reads_reports(words: Sequence[Text]) -> bool:
    """Whether a command is a profiler's, and measures nothing: it prints what it has measured."""
    tool = _tool(words)
    return tool is not None and any(re.fullmatch(_READING[tool], word.literal or "") for word in words[1:])


def parse_pass(words: Sequence[Text]) -> PassWords | None:
    """The pass that a command line asks for; None where it starts with no profiler that measures."""
    tool = _tool(words)
    if tool is None or reads_reports(words):
        return None
    pass_words, rest = PassWords(tool, words[0].literal or tool), list(words[1:])
    if tool == "nsys":
        command = rest[0].literal if rest else None
        if command not in {"profile", "nvprof"}:
            return None
        _read(
            pass_words,
            rest[1:],
            "nvprof" if command == "nvprof" else "nsys",
            _nsys_nvprof if command == "nvprof" else _nsys,
        )
        if command == "profile":  # nsys's own default
            pass_words.fields.setdefault("trace", ["cuda", "opengl", "nvtx", "osrt"])
    elif tool == "ncu":
        pass_words.kind = "counters"
        pass_words.fields = {"kernels": {"exclude": []}, "launches": {"skip": 0}, "metrics": []}
        _read(pass_words, rest, tool, _ncu)
        pass_words.fields["metrics"] = pass_words.fields["metrics"] or ["set:basic"]
    elif tool == "nvprof":
        _read(pass_words, rest, tool, _nvprof)
        if pass_words.kind == "counters":
            pass_words.fields = {"launches": {"skip": 0}, **pass_words.fields}
            pass_words.fields.setdefault("kernels", {"exclude": []})
            pass_words.fields.pop("report", None)
    else:
        pass_words.kind = "host"
        _read(pass_words, rest, tool, _vtune if tool == "vtune" else _aps)
    return pass_words


def _read(pass_words: PassWords, words: list[Text], table: str, take: Callable[[PassWords, _Option], None]) -> None:
    """Take the options up to the program's first word."""
    while words:
        first = words[0].pieces[0] if words[0].pieces else Piece("text", "")
        if words[0].literal == "--":
            pass_words.program = words[1:]
            return
        if first.kind == "computed":  # options, or the program: it has more words behind it then
            pass_words.unknown.append((words.pop(0).source_text, _NOT_KNOWN))
            continue
        if first.kind != "text" or not first.text.startswith("-"):
            break
        word = words.pop(0)
        name, equals, rest = first.text.partition("=")
        if equals:
            value: Text | None = Text((Piece("text", rest), *word.pieces[1:]))
        else:
            value = words.pop(0) if words and _has_value(table, name) else None
        take(pass_words, _Option(name, value, bool(equals)))
    pass_words.program = words


def _has_value(table: str, name: str) -> bool:
    if table in _VALUED:
        return name.replace("--", "-", 1) in _VALUED[table].split() or name in _VALUED[table].split()
    return name not in _FLAGS[table].split()


def _nsys(pass_words: PassWords, option: _Option) -> None:
    if option.name in {"-o", "--output", "-f", "--force-overwrite"}:
        pass_words.left_out.append((option.text_shown, _OWN_REPORT))
    elif option.name in {"-t", "--trace"}:
        domains = option.text.split(",")
        if set(domains) <= set(get_args(TraceDomain)):
            pass_words.fields["trace"] = domains
        else:
            pass_words.unknown.append((option.text_shown, "nsw does not know all of these"))
    else:
        pass_words.keep(option)


def _nsys_nvprof(pass_words: PassWords, option: _Option) -> None:
    reason = "nsys nvprof translates it: nsys's report has all events"
    pass_words.unknown.append((option.text_shown, reason))


_NCU_FIELDS: Final = {
    "--target-processes": ("processes", {"all": "all", "application-only": "application"}),
    "--replay-mode": ("replay", {mode: mode for mode in ("kernel", "application", "range", "app-range")}),
    "--clock-control": ("clocks", {"base": "base", "none": "none"}),
    "--cache-control": ("cache", {"all": "all", "none": "none"}),
}


def _ncu(pass_words: PassWords, option: _Option) -> None:
    if option.name in {"-o", "--export", "-f", "--force-overwrite"}:
        pass_words.left_out.append((option.text_shown, _OWN_REPORT))
    elif option.name in {"--csv", "--page", "--log-file", "--print-units", "--print-summary"}:
        pass_words.left_out.append((option.text_shown, _OWN_PAGES))
    elif option.name in {"--set", "--section"} and option.text:
        pass_words.fields["metrics"].append(f"{option.name[2:]}:{option.text}")
    elif option.name == "--metrics" and option.text:
        pass_words.fields["metrics"] += option.text.split(",")
    elif option.name in _NCU_FIELDS and option.text in _NCU_FIELDS[option.name][1]:
        key, values = _NCU_FIELDS[option.name]
        pass_words.fields[key] = values[option.text]
    else:
        pass_words.keep(option)


def _nvprof(pass_words: PassWords, option: _Option) -> None:
    if option.name in {"-o", "--export-profile"}:
        pass_words.fields["report"] = "file"
        pass_words.left_out.append((option.text_shown, _OWN_REPORT))
    elif option.name in {"-f", "--force-overwrite", "--log-file"}:
        pass_words.left_out.append((option.text_shown, _OWN_REPORT))
    elif option.name in {"--csv", "-u", "--normalized-time-unit", "--profile-child-processes", "--print-summary", "-s"}:
        pass_words.left_out.append((option.text_shown, "nsw prints the table as CSV in ns, of each process"))
    elif option.name in {"--print-gpu-trace", "--print-api-trace"}:
        pass_words.fields.setdefault("report", "trace")
    elif option.name in {"-m", "--metrics", "-e", "--events", "--analysis-metrics"}:
        pass_words.kind = "counters"
        event = "event:" if option.name in {"-e", "--events"} else ""
        names = option.text.split(",") if option.value is not None else ["set:analysis"]
        pass_words.fields.setdefault("metrics", []).extend(f"{event}{name}" for name in names)
    elif option.name == "--kernels" and option.text and ":" not in option.text:
        pass_words.fields["kernels"] = {"regex": option.text, "exclude": []}
    else:
        pass_words.keep(option)


def _vtune(pass_words: PassWords, option: _Option) -> None:
    name = "-" + option.name.lstrip("-")
    if name in {"-r", "-result-dir"}:
        pass_words.left_out.append((option.text_shown, _OWN_REPORT))
    elif name in {"-c", "-collect"} and option.text:
        pass_words.fields["analysis"] = option.text
    elif name == "-knob" and "=" in option.text:
        knob, _, value = option.text.partition("=")
        pass_words.fields.setdefault("knobs", {})[knob] = value
    else:
        pass_words.keep(option)


def _aps(pass_words: PassWords, option: _Option) -> None:
    if option.name in {"-r", "--result-dir"}:
        pass_words.left_out.append((option.text_shown, _OWN_REPORT))
    else:
        pass_words.keep(option)
