"""What is beside nsw's code: the files that it ships, the user's own folders, what other packages register.

An installed nsw holds templates, recipes and pages in nsw/_data; a checkout has them at its top, to be edited there.
"""

from __future__ import annotations

import errno
import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from nsw.errors import NswError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def templates_folder() -> Path:
    """The folder of the script and page templates."""
    return _folder("templates")


def recipes_folder() -> Path:
    """The folder of the shipped recipes; their programs are in its folder `apps`."""
    return _folder("recipes")


def docs_folder() -> Path:
    """The folder of the pages that `nsw help` shows."""
    return _folder("docs")


def reducer_script() -> Path:
    """The file that makes a small database of an nsys export, with nothing but Python's standard library."""
    return Path(str(files("nsw.readers.nsys").joinpath("reduce_export.py")))


def shipped_text(path: str) -> str:
    """The text of a file beside nsw's code, by its path from there."""
    return files("nsw").joinpath(path).read_text(encoding="utf-8")


def toml_data(path: str) -> dict[str, Any]:
    """What a TOML file beside nsw's code holds, by its path from there."""
    import tomllib

    return tomllib.loads(shipped_text(path))


def csv_rows(path: str) -> list[dict[str, str]]:
    """The rows of a CSV file beside nsw's code, by its path from there: each a map from column to text.

    A large file is packed: its name ends with .xz.
    """
    import csv
    import io

    data = files("nsw").joinpath(path).read_bytes()
    if path.endswith(".xz"):
        import lzma

        data = lzma.decompress(data)
    return list(csv.DictReader(io.StringIO(data.decode("utf-8"), newline="")))


def recordings_folder(collection: str) -> Traversable:
    """The folder of one collection of recordings, such as `alexnet-4xH200`.

    Raises:
        NswError: There is no such collection.
    """
    shipped = files("nsw").joinpath("demo", "recordings")
    collections = sorted(folder.name for folder in shipped.iterdir() if folder.is_dir())
    if collection not in collections:
        raise NswError(f"there are no recordings {collection}", hint=f"there are: {', '.join(collections)}")
    return shipped.joinpath(collection)


@cache
def _folder(name: str) -> Path:
    package = files("nsw")
    inside = package.joinpath("_data", name)
    if inside.is_dir():
        return _extract_if_zipped(inside)
    checkout_folder = package.joinpath("..", name)
    if isinstance(checkout_folder, Path) and checkout_folder.is_dir():
        return checkout_folder.resolve()
    raise NswError(
        f"nsw's own folder {name} is missing ({inside})", hint="this installation is damaged: install nsw again"
    )


def _extract_if_zipped(folder: Traversable) -> Path:
    """The folder itself, or a copy for the life of this process when nsw is imported from a zip file."""
    if isinstance(folder, Path):
        return folder
    import atexit
    import shutil
    import tempfile

    target = Path(tempfile.mkdtemp(prefix="nsw-"))
    atexit.register(shutil.rmtree, target, ignore_errors=True)
    _copy(folder, target)
    return target


def _copy(folder: Traversable, target: Path) -> None:
    # as_file() takes folders only from Python 3.12 on
    for item in folder.iterdir():
        if item.is_dir():
            (target / item.name).mkdir()
            _copy(item, target / item.name)
        else:
            (target / item.name).write_bytes(item.read_bytes())


def user_folder(kind: Literal["config", "cache", "state"]) -> Path:
    """The user's folder of that kind for nsw, which need not be there.

    Raises:
        OSError: The user has no home, as in a container that runs under a number.
    """
    import platformdirs

    variable = f"XDG_{kind.upper()}_HOME"
    try:
        folder = Path(getattr(platformdirs, f"user_{kind}_dir")("nsw"))
    except RuntimeError:  # neither HOME nor an entry in the user database
        folder = Path()
    # older platformdirs leave the ~ in it, and take an empty HOME for the root folder
    is_root = os.environ.get("HOME") == "" and not os.environ.get(variable)
    if is_root or not folder.is_absolute():
        raise OSError(errno.ENOENT, f"you have no home folder: set HOME, or {variable}")
    return folder


def entry_points_of(group: str) -> dict[str, str]:
    """Name -> `module:name` of each entry point of a group, such as `nsw.schedulers`."""
    return {point.name: point.value for point in _all_entry_points().select(group=group)}


@cache
def _all_entry_points() -> Any:
    """Those of all groups; to look for one group reads the files of all packages as well."""
    from importlib.metadata import entry_points

    return entry_points()
