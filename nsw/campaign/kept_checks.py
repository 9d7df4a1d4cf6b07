"""What `nsw sites check` found: kept a day for the warnings of `nsw run`, GPU and MPI until the site changes."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import time
from typing import TYPE_CHECKING, Any, Final

from nsw.campaign.site_check_result import REACHING, Check, Verdict
from nsw.errors import NswError
from nsw.safe_files import read_plain
from nsw.user_folders import user_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_DAY_S: Final = 24 * 3600.0
_MOST: Final = 1 << 20  # bytes


def keep(site: Mapping[str, Any], checks: Sequence[Check], now: float | None = None) -> None:
    """Write down what was found of a site; where that is not possible it is not kept."""
    rows = [[one.what, one.verdict.value, one.found, one.fix] for one in checks]
    data = {"time": time.time() if now is None else now, "site": _digest(site), "checks": rows}
    try:
        path = _path(site)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        part.write_text(json.dumps(data), encoding="utf-8")
        part.replace(path)
    except OSError:
        return


def gpu_found(site: Mapping[str, Any]) -> str | None:
    """The GPU's product as a compute node named it, else the login node; None where there were several or none."""
    named = re.fullmatch(r"\d+ x ([^,]+)", _good(site, "GPUs"))
    return named[1] if named else None


def mpi_found(site: Mapping[str, Any]) -> str | None:
    """The family of mpirun and mpiexec on a compute node, else on the login node; None where that was not found."""
    named = re.search(r"\(mpi: (\w+)\)$", _good(site, "MPI"))
    return named[1] if named else None


def _good(site: Mapping[str, Any], what: str) -> str:
    """What a good check found on a compute node, else on the login node."""
    found = kept(site, within=math.inf)
    listed = {} if found is None else {one.what: one.found for one in found[1] if one.verdict is Verdict.GOOD}
    return listed.get(f"{what} (node)") or listed.get(what) or ""


def kept(site: Mapping[str, Any], now: float | None = None, within: float = _DAY_S) -> tuple[float, list[Check]] | None:
    """What was found of a site in the last `within` seconds, and how many seconds ago; None where nothing was.

    What was found of a site whose description has changed since does not count.
    """
    try:
        data = json.loads(read_plain(_path(site), owner=os.geteuid(), last=_MOST))
        age = (time.time() if now is None else now) - float(data["time"])
        if not 0 <= age < within or data["site"] != _digest(site):
            return None
        return age, [
            Check(str(what), Verdict(verdict), str(found), str(fix)) for what, verdict, found, fix in data["checks"]
        ]
    except (OSError, ValueError, KeyError, TypeError, NswError):
        return None


def warnings(site: Mapping[str, Any], *, counters: bool) -> list[str]:
    """What `nsw run` should warn of: each a sentence.

    Args:
        site: The site as data.
        counters: Whether the plan has a pass that reads hardware counters.
    """
    found = kept(site)
    if found is None:
        return []
    age, checks = found
    when = f"{age / 3600:.0f} h" if age >= 3600 else f"{age / 60:.0f} min"
    wanted = [
        one
        for one in checks
        if (one.verdict is Verdict.WARNING or (one.verdict is Verdict.BAD and one.what not in REACHING))
        and (counters or not one.what.startswith("counters"))
    ]
    return [
        f"`nsw sites check {site.get('name')}`, {when} ago: {one.what}: {one.found}"
        + (f" ({one.fix})" if one.fix else "")
        for one in wanted
    ]


def _digest(site: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(site, sort_keys=True, default=str).encode()).hexdigest()


def _path(site: Mapping[str, Any]) -> Path:
    name = hashlib.sha256(str(site.get("name")).encode()).hexdigest()[:16]
    return user_folder("cache") / "checks" / f"{name}.json"
