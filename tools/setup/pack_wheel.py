"""Packs the wheel as small as zip can: with its strongest compression, and what is compressed already as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PackedWheel(BuildHookInterface[Any]):
    """What hatchling calls when it has built the wheel."""

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - hatchling gives them
        """Write the wheel again, with the same files in the same order.

        Args:
            version: standard or editable.
            build_data: What hatchling knows of the build.
            artifact_path: The wheel.
        """
        wheel = Path(artifact_path)
        packed = wheel.with_suffix(".packed")
        with ZipFile(wheel) as old, ZipFile(packed, "w") as new:
            for info in old.infolist():
                method = ZIP_STORED if info.filename.endswith(".xz") else ZIP_DEFLATED
                new.writestr(info, old.read(info), method, 9)
        packed.replace(wheel)
