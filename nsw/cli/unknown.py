"""A command that there is not: what was meant, or what does the same until it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection

# commands of later versions -> what there is today
_LATER: Final = {
    "attach": "campaigns are driven where they were begun; `nsw ls --root FOLDER` lists those of another folder",
    "compare": "variants of one campaign are compared by its recipe's `report: {compare: ...}`; for two campaigns write"
    " their tables side by side: `nsw summarize CAMPAIGN --format csv --output FOLDER`",
    "demo": "`nsw run alexnet_scaling.yaml --site demo` answers a question from recorded reports",
    "export": "`nsw summarize --format csv|parquet --output FOLDER` writes a campaign's tables,"
    " `nsw read FILE... --format csv|parquet --output FOLDER` those of any reports",
    "gate": "`nsw summarize --json` gives a script the figures to decide by",
    "query": "a campaign's tables are Parquet files in its folder `tables`; `nsw.open(CAMPAIGN).tables.gpu_summary`"
    " is a pandas frame",
    "report": "`nsw summarize` has each case in full, `--json` as data",
    "watch": "`nsw resume` follows a campaign to its end; `nsw status` looks once",
}
_SAME: Final = {
    "submit": "run", "start": "run", "check": "plan", "validate": "plan", "list": "ls", "show": "status",
    "stop": "cancel", "kill": "cancel", "continue": "resume", "rerun": "retry", "help": "--help",
}  # fmt: skip


def unknown(word: str, known: Collection[str]) -> UsageError:
    """What to say to `nsw WORD`."""
    if word in _LATER:
        return UsageError(f"`nsw {word}` is not in this version: it comes later", hint=_LATER[word])
    meant = f"did you mean 'nsw {_SAME[word]}'?" if word in _SAME else did_you_mean(word, known)
    return UsageError(f"there is no command {word!r}", hint=meant or "`nsw --help` lists the commands")
