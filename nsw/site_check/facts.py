"""What is known of a site beside its file: looked up on this machine, or found by `nsw sites check` and kept.

What was found is kept a day for the warnings of `nsw run`, GPU and MPI until the site changes. The metrics that the
site's own ncu lists are kept for a week: `nsw sites check` and `nsw metrics check --site` ask, a plan reads them.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import sys
import time
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from nsw.errors import NswError
from nsw.metrics import Chip, find_chip
from nsw.metrics.ncu_names import listed_names, query_words
from nsw.metrics.requests import tool_for
from nsw.plan.model import SiteFacts
from nsw.profilers import load
from nsw.recipe.profiler_names import on_a_site
from nsw.safe_files import make_folders, read_plain, write_text
from nsw.scripts.quoting import quote_all
from nsw.user_folders import user_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from nsw.site.load import LoadedSite
    from nsw.site.model import Site

REACHING: Final = frozenset({"connection", "host key", "login"})  # without one of these a site cannot be asked anything
_DAY_S: Final = 24 * 3600.0
_WEEK_S: Final = 7 * _DAY_S
_MOST: Final = 4 << 20  # bytes of a kept file
_ASK_S: Final = 120.0


class Verdict(StrEnum):
    """How a check went; `SKIPPED`: it could not be made, or does not matter here."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what was looked at, how it went, what was found, what to do.

    Some of what was found is data too: the names of the GPUs, the family of mpirun and mpiexec, how many seconds a
    wrong clock is ahead.
    """

    what: str
    verdict: Verdict
    found: str
    fix: str = ""
    gpus: tuple[str, ...] = field(default=(), compare=False)
    mpi: str | None = field(default=None, compare=False)
    ahead_s: float = field(default=0.0, compare=False)


def facts(place: LoadedSite) -> SiteFacts:
    """Find out what a site has: only this machine is looked at, of others what `nsw sites check` found is known."""
    from nsw.schedulers.local import detect

    site = place.site
    if site.replay:
        return _demo_facts(site)

    def ncu_names(chip: Chip) -> Collection[str] | None:
        return kept_names(place, chip)

    data = site.model_dump(mode="json", by_alias=True)
    mpi = None if site.mpi else mpi_found(data)
    if site.scheduler != "local" or site.transport.kind != "local":
        per_node = site.gpus.per_node
        chip = None if site.gpus.chip else gpu_found(data)
        return SiteFacts(gpus_per_node=per_node if isinstance(per_node, int) else None, mpi=mpi, chip=chip,
                         ncu_names=ncu_names)  # fmt: skip

    tools, missing = _tools({str(tool): path for tool, path in site.profilers.items()})
    known = isinstance(site.gpus.per_node, int) and site.gpus.chip is not None
    gpus = [] if known else detect()
    chip = gpus[0].name if gpus else None
    return SiteFacts(gpus_per_node=_gpu_count(site, lambda: len(gpus)), tools=tools, missing=missing, mpi=mpi,
                     chip=chip, ncu_names=ncu_names)  # fmt: skip


def _gpu_count(site: Site, detected: Callable[[], int]) -> int:
    per_node = site.gpus.per_node
    return per_node if isinstance(per_node, int) else detected()


def _tools(configured: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Profilers of this machine: found ones with their path, and why the others are not."""
    found: dict[str, str] = {}
    missing: dict[str, str] = {}
    for tool in on_a_site():
        variable = f"NSW_{tool.upper().replace('-', '_')}"
        named = configured.get(tool) or os.environ.get(variable)
        name = named or load(tool).EXECUTABLE or tool
        path = shutil.which(os.path.expandvars(name))
        if path:
            found[tool] = path
        elif named:
            missing[tool] = f"{tool} is not at {named}, where the site says"
        else:
            missing[tool] = f"{name} is not on PATH (name it in the site's profilers, or in {variable})"
    return found, missing


def _demo_facts(site: Site) -> SiteFacts:
    from nsw.demo import NOTE, recordings

    known = {(tuple(sorted(r.params.items())), r.pass_kind): r for r in recordings()}

    def replay(params: Mapping[str, Any], pass_kind: str) -> tuple[str, ...] | None:
        recording = known.get((tuple(sorted(params.items())), pass_kind))
        return (sys.executable, "-P", "-m", "nsw.demo", recording.name) if recording else None

    return SiteFacts(
        gpus_per_node=_gpu_count(site, lambda: 4),
        replay=replay,
        replayed_reports=("*.sqlite",),
        replayed_tool="nsys",
        note=NOTE,
    )


def keep(site: Mapping[str, Any], checks: Sequence[Check], now: float | None = None) -> None:
    """Write down what was found of a site; where that is not possible it is not kept."""
    _write(_checks_file(site), {"time": now, "site": _digest(site), "checks": [asdict(one) for one in checks]})


def gpu_found(site: Mapping[str, Any]) -> str | None:
    """The GPU's product as a compute node named it, else the login node; None where there were several or none."""
    found = _good(site, "GPUs")
    kinds = set(found.gpus) if found else set()
    return kinds.pop() if len(kinds) == 1 else None


def mpi_found(site: Mapping[str, Any]) -> str | None:
    """The family of mpirun and mpiexec on a compute node, else on the login node; None where that was not found."""
    found = _good(site, "MPI")
    return found.mpi if found else None


def _good(site: Mapping[str, Any], what: str) -> Check | None:
    """What a good check found on a compute node, else on the login node."""
    found = kept(site, within=math.inf)
    good = {} if found is None else {one.what: one for one in found[1] if one.verdict is Verdict.GOOD}
    return good.get(f"{what} (node)") or good.get(what)


def kept(site: Mapping[str, Any], now: float | None = None, within: float = _DAY_S) -> tuple[float, list[Check]] | None:
    """What was found of a site in the last `within` seconds, and how many seconds ago; None where nothing was.

    What was found of a site whose description has changed since does not count.
    """
    with suppress(OSError, ValueError, KeyError, TypeError, NswError):
        data = _read(_checks_file(site), now, within)
        if data["site"] == _digest(site):
            return data["age"], [_check(**row) for row in data["checks"]]
    return None


def _check(*, gpus: list[str], verdict: str, **row: Any) -> Check:
    return Check(verdict=Verdict(verdict), gpus=tuple(gpus), **row)


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
    return [
        f"`nsw sites check {site.get('name')}`, {when} ago: {one.what}: {one.found}"
        + (f" ({one.fix})" if one.fix else "")
        for one in checks
        if (one.verdict is Verdict.WARNING or (one.verdict is Verdict.BAD and one.what not in REACHING))
        and (counters or not one.what.startswith("counters"))
    ]


def _digest(site: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(site, sort_keys=True, default=str).encode()).hexdigest()


def _checks_file(site: Mapping[str, Any]) -> Path:
    name = hashlib.sha256(str(site.get("name")).encode()).hexdigest()[:16]
    return user_folder("cache") / "checks" / f"{name}.json"


@dataclass(frozen=True, slots=True)
class SiteMetrics:
    """The base names that an ncu lists, and where they come from; None where it could not be asked, and why."""

    names: frozenset[str] | None
    note: str


def chip_of(place: LoadedSite) -> str | None:
    """The chip that the site names, else the GPU that is found on this machine."""
    return place.site.gpus.chip or facts(place).chip


def site_metrics(place: LoadedSite, chip: Chip, now: float | None = None) -> SiteMetrics:
    """Ask the site's ncu which metrics it knows on a chip, or read what it answered within the last week."""
    from nsw.transport.model import connect

    ncu, site = ncu_of(place), place.site
    if (known := kept_names(place, chip, now)) is not None:
        return SiteMetrics(known, f"by the {len(known)} names that {ncu} of site {site.name} lists (kept)")
    asked = " ".join(query_words(ncu, chip.name))
    load = f"module load {quote_all(site.modules)} 2>/dev/null; " if site.modules else ""
    shell = ["bash", "-lc" if site.login_shell else "-c", f'{load}exec "$@"', "nsw"]
    try:
        with closing(connect(place.site.model_dump(mode="json", by_alias=True))) as transport:
            done = transport.run([*shell, *query_words(ncu, chip.name)], timeout=_ASK_S)
    except (NswError, OSError) as fault:
        return SiteMetrics(None, f"site {site.name} could not be asked ({fault})")
    found = listed_names(done.stdout)
    if done.returncode != 0 or not found:
        lines = (done.stderr or done.stdout).strip().splitlines()
        why = lines[-1][:200] if lines else f"exit status {done.returncode}"
        return SiteMetrics(None, f"`{asked}` gave no list on site {site.name} ({why})")
    _write(_metrics_file(place, chip), {"time": now, "names": sorted(found)})
    return SiteMetrics(found, f"by the {len(found)} names that {ncu} of site {site.name} lists")


def kept_names(place: LoadedSite, chip: Chip, now: float | None = None) -> frozenset[str] | None:
    """The base names that the site's ncu listed within the last week; None where it was not asked."""
    with suppress(OSError, ValueError, KeyError, TypeError, NswError):
        return frozenset(str(name) for name in _read(_metrics_file(place, chip), now, _WEEK_S)["names"]) or None
    return None


def ncu_of(place: LoadedSite) -> str:
    """The site's ncu: as its file names it, else NSW_NCU, else the one on PATH."""
    named = {str(tool): path for tool, path in place.site.profilers.items()}.get("ncu")
    return named or os.environ.get("NSW_NCU", "ncu")


def _metrics_file(place: LoadedSite, chip: Chip) -> Path:
    site = place.site.model_dump(mode="json", include={"transport", "modules", "profilers"})
    key = hashlib.sha256(
        json.dumps([place.site.name, site, ncu_of(place), chip.name], sort_keys=True).encode()
    ).hexdigest()
    return user_folder("cache") / "metrics" / f"{key[:32]}.json"


def listed_metrics(place: LoadedSite, checks: Iterable[Check]) -> Check | None:
    """Ask the site's ncu; None where it has no ncu, or the chip is not known or not measured by one.

    Args:
        place: The site.
        checks: What was found of it so far, as `keep` has kept it.
    """
    has_ncu = any(one.what == "ncu" and one.verdict is Verdict.GOOD for one in checks)
    chip = find_chip(place.site.gpus.chip or gpu_found(place.site.model_dump(mode="json", by_alias=True)))
    if not has_ncu or chip is None or tool_for(chip) != "ncu":
        return None
    found = site_metrics(place, chip)
    if found.names is None:
        fix = "recipes are checked by the lists that nsw ships"
        return Check("metrics", Verdict.SKIPPED, found.note, fix)
    return Check(
        "metrics", Verdict.GOOD, f"ncu lists {len(found.names)} metrics for {chip.name}; plans are checked against them"
    )


def _read(path: Path, now: float | None, within: float) -> dict[str, Any]:
    """What was written there in the last `within` seconds, with its age.

    Raises:
        ValueError: It is older, or damaged; OSError, KeyError, TypeError and NswError likewise.
    """
    data: dict[str, Any] = json.loads(read_plain(path, owner=os.geteuid(), last=_MOST))
    age = (time.time() if now is None else now) - float(data["time"])
    if not 0 <= age < within:
        raise ValueError
    return data | {"age": age}


def _write(path: Path, data: dict[str, Any]) -> None:
    """Write it down in one step; where that is not possible it is not kept."""
    with suppress(OSError):
        make_folders(path.parent, 0o700)
        write_text(path, json.dumps(data | {"time": time.time() if data["time"] is None else data["time"]}))
