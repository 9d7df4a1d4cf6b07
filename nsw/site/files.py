"""Where sites files are looked for. Imports little: completion asks it at every Tab."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

BUILTIN = Path(__file__).with_name("builtin.yaml")
FILE_NAME = "sites.yaml"
ENVIRONMENT = "NSW_SITES"  # files, separated as in PATH


def sites_files(files: Sequence[Path] | None = None) -> list[Path]:
    """The files searched, in order: those given, $NSW_SITES, ./sites.yaml, the user's, the built-in one.

    Files that were asked for by name are listed whether they exist or not.
    """
    named = [*(files or ()), *(Path(p) for p in os.environ.get(ENVIRONMENT, "").split(os.pathsep) if p)]
    usual = [path for path in (Path(FILE_NAME), user_file()) if path.is_file()]
    unique: dict[Path, Path] = {}
    for path in [*named, *usual, BUILTIN]:
        unique.setdefault(path.absolute(), path)
    return list(unique.values())


def user_file() -> Path:
    """The sites file in the user's configuration folder, which need not be there."""
    from platformdirs import user_config_path

    return user_config_path("nsw") / FILE_NAME
