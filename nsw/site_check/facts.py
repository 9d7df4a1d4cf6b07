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
from nsw.resources import user_folder
from nsw.safe_files import make_folders, read_plain, write_text
from nsw.scripts.quoting import quote_all

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from nsw.site.load import LoadedSite
    from nsw.site.model import Site

REACHING: Final = frozenset({"connection", "host key", "login"})  # without one of these a site cannot be asked anything
_DAY_S: Final = 24 * 3600.0
_WEEK_S: Final = 7 * _DAY_S
_MAX_BYTES: Final = 4 << 20  # bytes of a kept file
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


def find_facts(loaded_site: LoadedSite) -> SiteFacts:
    """Find out what a site has: only this machine is looked at, of others what `nsw sites check` found is known."""
    from nsw.schedulers.local import detect

    site = loaded_site.site
    if site.replay:
        return _demo_facts(site)

    def ncu_names(chip: Chip) -> Collection[str] | None:
        return kept_names(loaded_site, chip)

    data = site.model_dump(mode="json", by_alias=True)
    mpi = None if site.mpi else mpi_found(data)
    if site.scheduler != "local" or site.transport.kind != "local":
        per_node = site.gpus.per_node
        chip = None if site.gpus.chip else gpu_found(data)
        return SiteFacts(gpus_per_node=per_node if isinstance(per_node, int) else None, mpi=mpi, chip=chip,
                         ncu_names=ncu_names)  # fmt: skip

    tools, missing = _tools({str(tool): path for tool, path in site.profilers.items()})
    is_stated = isinstance(site.gpus.per_node, int) and site.gpus.chip is not None
    gpus = [] if is_stated else detect()
    chip = gpus[0].name if gpus else None
    return SiteFacts(gpus_per_node=_gpu_count(site, lambda: len(gpus)), tools=tools, missing=missing, mpi=mpi,
                     chip=chip, ncu_names=ncu_names)  # fmt: skip


def _gpu_count(site: Site, detected: Callable[[], int]) -> int:
    per_node = site.gpus.per_node
    return per_node if isinstance(per_node, int) else detected()


def _tools(configured: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Profilers of this machine: found ones with their path, and why the others are not."""
    paths: dict[str, str] = {}
    missing: dict[str, str] = {}
    for tool in on_a_site():
        variable = f"NSW_{tool.upper().replace('-', '_')}"
        stated = configured.get(tool) or os.environ.get(variable)
        name = stated or load(tool).EXECUTABLE or tool
        path = shutil.which(os.path.expandvars(name))
        if path:
            paths[tool] = path
        elif stated:
            missing[tool] = f"{tool} is not at {stated}, where the site says"
        else:
            missing[tool] = f"{name} is not on PATH (name it in the site's profilers, or in {variable})"
    return paths, missing


def _demo_facts(site: Site) -> SiteFacts:
    from nsw.demo import NOTE, recordings

    recordings_by_case = {(tuple(sorted(r.params.items())), r.pass_kind): r for r in recordings()}

    def replay(params: Mapping[str, Any], pass_kind: str) -> tuple[str, ...] | None:
        recording = recordings_by_case.get((tuple(sorted(params.items())), pass_kind))
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
    _write(
        _checks_file(site),
        {"time": now, "site": _digest(site), "checks": [asdict(site_check) for site_check in checks]},
    )


def gpu_found(site: Mapping[str, Any]) -> str | None:
    """The GPU's product as a compute node named it, else the login node; None where there were several or none."""
    gpu_check = _good(site, "GPUs")
    kinds = set(gpu_check.gpus) if gpu_check else set()
    return kinds.pop() if len(kinds) == 1 else None


def mpi_found(site: Mapping[str, Any]) -> str | None:
    """The family of mpirun and mpiexec on a compute node, else on the login node; None where that was not found."""
    mpi_check = _good(site, "MPI")
    return mpi_check.mpi if mpi_check else None


def _good(site: Mapping[str, Any], subject: str) -> Check | None:
    """What a good check found on a compute node, else on the login node."""
    age_and_checks = kept_checks(site, within=math.inf)
    good = (
        {}
        if age_and_checks is None
        else {site_check.what: site_check for site_check in age_and_checks[1] if site_check.verdict is Verdict.GOOD}
    )
    return good.get(f"{subject} (node)") or good.get(subject)


def kept_checks(
    site: Mapping[str, Any], now: float | None = None, within: float = _DAY_S
) -> tuple[float, list[Check]] | None:
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
    age_and_checks = kept_checks(site)
    if age_and_checks is None:
        return []
    age, checks = age_and_checks
    age_text = f"{age / 3600:.0f} h" if age >= 3600 else f"{age / 60:.0f} min"
    return [
        f"`nsw sites check {site.get('name')}`, {age_text} ago: {site_check.what}: {site_check.found}"
        + (f" ({site_check.fix})" if site_check.fix else "")
        for site_check in checks
        if (
            site_check.verdict is Verdict.WARNING
            or (site_check.verdict is Verdict.BAD and site_check.what not in REACHING)
        )
        and (counters or not site_check.what.startswith("counters"))
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


def chip_of(loaded_site: LoadedSite) -> str | None:
    """The chip that the site names, else the GPU that is found on this machine."""
    return loaded_site.site.gpus.chip or find_facts(loaded_site).chip


def site_metrics(loaded_site: LoadedSite, chip: Chip, now: float | None = None) -> SiteMetrics:
    """Ask the site's ncu which metrics it knows on a chip, or read what it answered within the last week."""
    from nsw.transport.model import connect

    ncu, site = ncu_of(loaded_site), loaded_site.site
    if (kept := kept_names(loaded_site, chip, now)) is not None:
        return SiteMetrics(kept, f"by the {len(kept)} names that {ncu} of site {site.name} lists (kept)")
    query = " ".join(query_words(ncu, chip.name))
    load = f"module load {quote_all(site.modules)} 2>/dev/null; " if site.modules else ""
    shell = ["bash", "-lc" if site.login_shell else "-c", f'{load}exec "$@"', "nsw"]
    try:
        with closing(connect(loaded_site.site.model_dump(mode="json", by_alias=True))) as transport:
            done = transport.run([*shell, *query_words(ncu, chip.name)], timeout=_ASK_S)
    except (NswError, OSError) as fault:
        return SiteMetrics(None, f"site {site.name} could not be asked ({fault})")
    names = listed_names(done.stdout)
    if done.returncode != 0 or not names:
        lines = (done.stderr or done.stdout).strip().splitlines()
        reason = lines[-1][:200] if lines else f"exit status {done.returncode}"
        return SiteMetrics(None, f"`{query}` gave no list on site {site.name} ({reason})")
    _write(_metrics_file(loaded_site, chip), {"time": now, "names": sorted(names)})
    return SiteMetrics(names, f"by the {len(names)} names that {ncu} of site {site.name} lists")


def kept_names(loaded_site: LoadedSite, chip: Chip, now: float | None = None) -> frozenset[str] | None:
    """The base names that the site's ncu listed within the last week; None where it was not asked."""
    with suppress(OSError, ValueError, KeyError, TypeError, NswError):
        return frozenset(str(name) for name in _read(_metrics_file(loaded_site, chip), now, _WEEK_S)["names"]) or None
    return None


def ncu_of(loaded_site: LoadedSite) -> str:
    """The site's ncu: as its file names it, else NSW_NCU, else the one on PATH."""
    stated = {str(tool): path for tool, path in loaded_site.site.profilers.items()}.get("ncu")
    return stated or os.environ.get("NSW_NCU", "ncu")


def _metrics_file(loaded_site: LoadedSite, chip: Chip) -> Path:
    site = loaded_site.site.model_dump(mode="json", include={"transport", "modules", "profilers"})
    key = hashlib.sha256(
        json.dumps([loaded_site.site.name, site, ncu_of(loaded_site), chip.name], sort_keys=True).encode()
    ).hexdigest()
    return user_folder("cache") / "metrics" / f"{key[:32]}.json"


def listed_metrics(loaded_site: LoadedSite, checks: Iterable[Check]) -> Check | None:
    """Ask the site's ncu; None where it has no ncu, or the chip is not known or not measured by one.

    Args:
        loaded_site: The site.
        checks: What was found of it so far, as `keep` has kept it.
    """
    has_ncu = any(site_check.what == "ncu" and site_check.verdict is Verdict.GOOD for site_check in checks)
    chip = find_chip(loaded_site.site.gpus.chip or gpu_found(loaded_site.site.model_dump(mode="json", by_alias=True)))
    if not has_ncu or chip is None or tool_for(chip) != "ncu":
        return None
    metrics = site_metrics(loaded_site, chip)
    if metrics.names is None:
        fix = "recipes are checked by the lists that nsw ships"
        return Check("metrics", Verdict.SKIPPED, metrics.note, fix)
    return Check(
        "metrics",
        Verdict.GOOD,
        f"ncu lists {len(metrics.names)} metrics for {chip.name}; plans are checked against them",
    )


def _read(path: Path, now: float | None, within: float) -> dict[str, Any]:
    """What was written there in the last `within` seconds, with its age.

    Raises:
        ValueError: It is older, or damaged; OSError, KeyError, TypeError and NswError likewise.
    """
    data: dict[str, Any] = json.loads(read_plain(path, owner=os.geteuid(), last=_MAX_BYTES))
    age = (time.time() if now is None else now) - float(data["time"])
    if not 0 <= age < within:
        raise ValueError
    return data | {"age": age}


def _write(path: Path, data: dict[str, Any]) -> None:
    """Write it down in one step; where that is not possible it is not kept."""
    with suppress(OSError):
        make_folders(path.parent, 0o700)
        write_text(path, json.dumps(data | {"time": time.time() if data["time"] is None else data["time"]}))
