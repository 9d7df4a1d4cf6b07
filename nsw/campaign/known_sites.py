"""Machines that nsw ships a site for: recognised by what they call themselves, and written from the shipped file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from nsw.campaign.site_starter import scalar, transport_of
from nsw.resources import recipes_folder
from nsw.site.load import read_sites

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nsw.campaign.site_starter import Answers

# site, which is also the name of its file in recipes/sites -> a host name of its login nodes, or a variable set there
_NAMES: Final[Mapping[str, str]] = {
    "polaris": r"polaris-login-\d+|.*\.polaris\.alcf\.anl\.gov",
    "aurora": r"aurora-uan-\d+|.*\.aurora\.alcf\.anl\.gov",
    "perlmutter": r"NERSC_HOST=perlmutter|.*\.perlmutter\.nersc\.gov",
    "frontier": r"LMOD_SYSTEM_NAME=frontier|.*\.frontier\.olcf\.ornl\.gov",
    "cooley": r"cooleylogin\d+|.*\.cooley\.(pub\.)?alcf\.anl\.gov",
    "theta": r"thetalogin\d+|.*\.theta\.(pub\.)?alcf\.anl\.gov",
}
_ACCOUNT: Final = re.compile(r"^    account: (\S+)", re.MULTILINE)


def known_site(answers: Answers) -> str | None:
    """The shipped site of a machine; None where its names are unknown, or it has another batch system than the site."""
    for site, pattern in _NAMES.items():
        if any(re.fullmatch(pattern, name, re.IGNORECASE) for name in answers.names):
            return site if _scheduler(site) == answers.scheduler else None
    return None


def _scheduler(site: str) -> str:
    return next(one.site.scheduler for one in read_sites(_file(site)) if one.site.name == site)


def _file(site: str) -> Path:
    return recipes_folder() / "sites" / f"{site}.yaml"


def shipped_site(known: str, name: str, answers: Answers) -> tuple[str, list[str], list[str]]:
    """A shipped site under another name.

    Args:
        known: The site as `known_site` names it.
        name: The name that it gets.
        answers: What its machine answered.

    Returns:
        Its lines as they are below `sites:`; what was found, a line each; what a person has to fill in or check.
    """
    text = _file(known).read_text(encoding="utf-8")
    lines = re.search(rf"^  {known}:.*\n((?:    .*\n)+)", text, re.MULTILINE)
    assert lines is not None  # tested with each of them
    body = lines[1]
    if answers.host is not None:
        body = re.sub(
            r"^(    scheduler: .*\n)", rf"\1    transport: {transport_of(answers)}\n", body, flags=re.MULTILINE
        )
    todo = [f"account: the project that pays, in place of {_ACCOUNT.findall(body)[0]}"]
    if answers.accounts:
        body = _ACCOUNT.sub(lambda _: f"    account: {scalar(answers.accounts[0])}", body)
        todo = [f"account: one of {', '.join(answers.accounts)}"] if answers.accounts[1:] else []
    todo.append(
        f"check each line: nsw ships recipes/sites/{known}.yaml as the centre's pages were, and it was not run there"
    )
    found = [f"the machine is {known}: the site is the one that nsw ships for it", f"scheduler: {answers.scheduler}"]
    return f"  {scalar(name)}: # {known}, as nsw ships it\n{body}", found, todo
