"""The metrics that a site's own ncu knows: asked once, and kept for a week.

`nsw sites check` and `nsw metrics check --site` ask; a plan reads what is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nsw.errors import NswError
from nsw.safe_files import read_plain

if TYPE_CHECKING:
    from pathlib import Path

    from nsw.metrics import Chip
    from nsw.site.load import LoadedSite

_KEPT_S: Final = 7 * 24 * 3600.0
_MOST: Final = 4 << 20  # bytes of a kept list
_ASK_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class SiteMetrics:
    """The base names that an ncu lists; None where it could not be asked, and `note` says why."""

    names: frozenset[str] | None
    note: str


def chip_of(place: LoadedSite) -> str | None:
    """The chip that the site names, else the GPU that is found on this machine."""
    from nsw.service.site_facts import facts

    return place.site.gpus.chip or facts(place).chip


def kept_names(place: LoadedSite, chip: Chip) -> frozenset[str] | None:
    """The base names that the site's ncu listed within the last week; None where it was not asked."""
    return _kept(_path(place, _ncu(place), chip), time.time())


def site_metrics(place: LoadedSite, chip: Chip, now: float | None = None) -> SiteMetrics:
    """Ask the site's ncu which metrics it knows on a chip, or read what it answered within the last week."""
    from nsw.metrics.query import listed, words
    from nsw.scripts.quoting import quote_all
    from nsw.service.dry_run import way_to

    ncu, site = _ncu(place), place.site
    now = time.time() if now is None else now
    path = _path(place, ncu, chip)
    if (known := _kept(path, now)) is not None:
        return SiteMetrics(known, f"by the {len(known)} names that {ncu} of site {site.name} lists (kept)")
    asked = " ".join(words(ncu, chip.name))
    load = f"module load {quote_all(site.modules)} 2>/dev/null; " if site.modules else ""
    shell = ["bash", "-lc" if site.login_shell else "-c", f'{load}exec "$@"', "nsw"]
    try:
        with closing(way_to(place)) as transport:
            done = transport.run([*shell, *words(ncu, chip.name)], timeout=_ASK_S)
    except (NswError, OSError) as fault:
        return SiteMetrics(None, f"site {site.name} could not be asked ({fault}): by the shipped lists")
    found = listed(done.stdout)
    if done.returncode != 0 or not found:
        lines = (done.stderr or done.stdout).strip().splitlines()
        why = lines[-1][:200] if lines else f"exit status {done.returncode}"
        return SiteMetrics(None, f"`{asked}` gave no list on site {site.name} ({why}): by the shipped lists")
    _keep(path, found, now)
    return SiteMetrics(found, f"by the {len(found)} names that {ncu} of site {site.name} lists")


def _ncu(place: LoadedSite) -> str:
    named = {str(tool): path for tool, path in place.site.profilers.items()}.get("ncu")
    return named or os.environ.get("NSW_NCU", "ncu")


def _path(place: LoadedSite, ncu: str, chip: Chip) -> Path:
    from platformdirs import user_cache_path

    site = place.site.model_dump(mode="json", include={"transport", "modules", "profilers"})
    key = hashlib.sha256(json.dumps([place.site.name, site, ncu, chip.name], sort_keys=True).encode()).hexdigest()
    return user_cache_path("nsw") / "metrics" / f"{key[:32]}.json"


def _kept(path: Path, now: float) -> frozenset[str] | None:
    try:
        data: Any = json.loads(read_plain(path, owner=os.geteuid(), last=_MOST))
        if not 0 <= now - float(data["time"]) < _KEPT_S:
            return None
        return frozenset(str(name) for name in data["names"]) or None
    except (OSError, ValueError, KeyError, TypeError, NswError):
        return None


def _keep(path: Path, names: frozenset[str], now: float) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        part.write_text(json.dumps({"time": now, "names": sorted(names)}), encoding="utf-8")
        part.replace(path)
    except OSError:
        return  # it is asked again
