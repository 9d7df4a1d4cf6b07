"""Where Python looks for modules: never in the folder that a user happens to be in, which may be a stranger's.

`python -m` puts the current folder first, and so do the processes of multiprocessing; an empty entry in PYTHONPATH
means it too. Imports only what is built into Python: whatever else it asked for, that folder might answer. What
`python -m` itself imports before it finds nsw is out of reach from here: `nsw` and `python -P -m nsw` have no such gap.
"""

# ruff: noqa: PTH100, PTH117, PTH120  pathlib is one of those modules

import os
import sys

_SAFE = "PYTHONSAFEPATH"
_PATH = "PYTHONPATH"


def leave_folder_of_module() -> None:
    """For `python -m nsw`: take off what -m put first; behind all else where nsw itself is from there."""
    if sys.flags.safe_path or sys.argv[:1] != ["-m"]:  # so while Python looks for the module
        return
    word = sys.orig_argv[-len(sys.argv)]
    name = word.partition("m")[2] if word.startswith("-") else word  # `-m nsw`, `-mnsw`, `-um nsw`
    if name.partition(".")[0] == "nsw":
        _put_last(sys.path.pop(0))


def drop_relative_pythonpath() -> None:
    """Take off sys.path what empty or relative entries of PYTHONPATH put there, for the program."""
    if sys.flags.ignore_environment or not (import_path := os.environ.get(_PATH)):
        return
    for entry in import_path.split(os.pathsep):
        if not os.path.isabs(entry) and (folder := os.path.abspath(entry)) in sys.path:
            sys.path.remove(folder)
            _put_last(folder)


def _put_last(folder: str) -> None:
    if os.path.dirname(os.path.dirname(os.path.abspath(__file__))) == folder:
        sys.path.append(folder)


def processes_are_safe() -> bool:
    """Whether processes of multiprocessing can be kept from the current folder; `python -E` ignores how."""
    return bool(sys.flags.safe_path) or not sys.flags.ignore_environment


class SafeProcesses:
    """`with SafeProcesses():` interpreters started meanwhile do not look in the current folder."""

    def __enter__(self) -> None:
        self._before = {name: os.environ.get(name) for name in (_SAFE, _PATH)}
        os.environ[_SAFE] = "1"
        if absolute_entries := [
            entry for entry in (self._before[_PATH] or "").split(os.pathsep) if os.path.isabs(entry)
        ]:
            os.environ[_PATH] = os.pathsep.join(absolute_entries)
        else:
            os.environ.pop(_PATH, None)

    def __exit__(self, *_: object) -> None:
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
