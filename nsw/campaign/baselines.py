"""Campaigns that a person gave a name, to compare with: `baselines.json` in the folder of campaigns."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from nsw import safe_files
from nsw.errors import CampaignError, UsageError, did_you_mean

__all__ = ["read_baselines", "remove", "set_baseline"]

_FILE: Final = "baselines.json"
_LONGEST: Final = 1 << 20
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]*")


def read_baselines(root: Path) -> dict[str, str]:
    """The id of each baseline's campaign.

    Raises:
        CampaignError: The file is damaged.
    """
    try:
        known = json.loads(safe_files.read_plain(root / _FILE, last=_LONGEST))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as fault:
        raise CampaignError(
            f"{root / _FILE} cannot be read: {fault}", hint="remove it, and set baselines anew"
        ) from None
    if not isinstance(known, dict) or not all(isinstance(value, str) for value in known.values()):
        raise CampaignError(f"{root / _FILE} holds no baselines", hint="remove it, and set baselines anew")
    return known


def set_baseline(root: Path, name: str, campaign: str) -> None:
    """Name a campaign as a baseline; another campaign that had the name loses it.

    Args:
        root: The folder of campaigns.
        name: The baseline's name.
        campaign: The campaign's id.

    Raises:
        UsageError: The name has other characters than letters, digits, _ . @ and -.
        CampaignError: The file of baselines is damaged.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"'{name}' is no name for a baseline", hint="letters, digits, _ . @ - make one")
    _write_baselines(root, read_baselines(root) | {name: campaign})


def remove(root: Path, name: str) -> None:
    """Forget a name; its campaign stays.

    Raises:
        UsageError: There is no such.
    """
    baselines = read_baselines(root)
    if name not in baselines:
        raise UsageError(
            f"there is no baseline {name}", hint=did_you_mean(name, baselines) or "`nsw baseline ls` lists them"
        )
    _write_baselines(root, {baseline: campaign for baseline, campaign in baselines.items() if baseline != name})


def _write_baselines(root: Path, baselines: dict[str, str]) -> None:
    safe_files.write_text(root / _FILE, json.dumps(baselines, indent=1, sort_keys=True) + "\n")
