"""The metrics that a site's own ncu lists, cached for a week in the user's folder."""

from __future__ import annotations

import hashlib
import json
import os
import time
from typing import TYPE_CHECKING, Any, Final

from nsw.errors import NswError
from nsw.safe_files import read_plain
from nsw.user_folders import user_folder

if TYPE_CHECKING:
    from pathlib import Path

    from nsw.metrics import Chip
    from nsw.site.load import LoadedSite

_KEPT_S: Final = 7 * 24 * 3600.0
_MOST: Final = 4 << 20  # bytes of a kept list


def kept_names(place: LoadedSite, chip: Chip, now: float | None = None) -> frozenset[str] | None:
    """The base names that the site's ncu listed within the last week; None where it was not asked."""
    now = time.time() if now is None else now
    try:
        data: Any = json.loads(read_plain(_path(place, chip), owner=os.geteuid(), last=_MOST))
        if not 0 <= now - float(data["time"]) < _KEPT_S:
            return None
        return frozenset(str(name) for name in data["names"]) or None
    except (OSError, ValueError, KeyError, TypeError, NswError):
        return None


def keep_names(place: LoadedSite, chip: Chip, names: frozenset[str], now: float) -> None:
    """Keep what the site's ncu listed; where that is not possible it is asked again."""
    try:
        path = _path(place, chip)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        part.write_text(json.dumps({"time": now, "names": sorted(names)}), encoding="utf-8")
        part.replace(path)
    except OSError:
        return


def ncu_of(place: LoadedSite) -> str:
    """The site's ncu: as its file names it, else NSW_NCU, else the one on PATH."""
    named = {str(tool): path for tool, path in place.site.profilers.items()}.get("ncu")
    return named or os.environ.get("NSW_NCU", "ncu")


def _path(place: LoadedSite, chip: Chip) -> Path:
    site = place.site.model_dump(mode="json", include={"transport", "modules", "profilers"})
    key = hashlib.sha256(
        json.dumps([place.site.name, site, ncu_of(place), chip.name], sort_keys=True).encode()
    ).hexdigest()
    return user_folder("cache") / "metrics" / f"{key[:32]}.json"
