"""Keep pyarrow from importing pandas with its first array: 0.3 s of CPU, and no command of nsw uses pandas.

pyarrow looks for pandas once, to recognise its objects, and takes it for absent if it cannot be imported then. A
package that imports pandas later in the same process finds everything as usual: pyarrow is made to look again.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_PANDAS = "pandas"
_PYARROW = "pyarrow"


def import_pandas_on_demand() -> None:
    """From now on pyarrow imports pandas only when it is asked for its objects; for programs, not for a library."""
    if _PANDAS not in sys.modules and _PYARROW not in sys.modules:
        sys.meta_path.insert(0, _Imports())


class _Imports:
    """Takes part in the first import of pyarrow, and in that of pandas after it."""

    def __init__(self) -> None:
        self._waits_for = _PYARROW
        self._hides_pandas = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The module as others find it, with a step behind its loading."""
        if name == _PANDAS and self._hides_pandas:
            raise ModuleNotFoundError(f"{_PANDAS} is imported on demand", name=_PANDAS)
        if name not in {_PYARROW, _PANDAS}:
            return None
        if name != self._waits_for:  # somebody imports pandas first, and pyarrow shall find it
            sys.meta_path.remove(self)
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next((found for finder in others if (found := finder.find_spec(name, path, target))), None)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_and_tell(module: ModuleType) -> None:
            load(module)
            if name == _PYARROW:
                self._hide_pandas(module)
            else:
                self._show_pandas()

        spec.loader.exec_module = load_and_tell  # type: ignore[method-assign]  # of this one loader
        return spec

    def _hide_pandas(self, pyarrow: Any) -> None:
        self._hides_pandas = True
        pyarrow.array([])  # it looks for pandas now
        self._hides_pandas = False
        self._waits_for = _PANDAS

    def _show_pandas(self) -> None:
        sys.meta_path.remove(self)
        sys.modules[_PYARROW].array([]).to_pandas()
