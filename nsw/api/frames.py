"""Tables as attributes: `tables.gpu_summary` is a pandas frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsw.errors import did_you_mean
from nsw.tables.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

PREFIX = "param_"  # of a parameter whose name is that of a column


class Tables:
    """The tables of nsw.tables.schema as attributes; one that no report filled is an empty frame with its columns."""

    if TYPE_CHECKING:  # for mypy and for editors; a test compares this with the schema
        api_summary: pd.DataFrame
        api_trace: pd.DataFrame
        chosen_launches: pd.DataFrame
        communication: pd.DataFrame
        earlier_figures: pd.DataFrame
        facts: pd.DataFrame
        figures: pd.DataFrame
        functions: pd.DataFrame
        gpu_summary: pd.DataFrame
        gpu_trace: pd.DataFrame
        iteration_trace: pd.DataFrame
        iterations: pd.DataFrame
        launches: pd.DataFrame
        metrics: pd.DataFrame
        nvtx_gpu_summary: pd.DataFrame
        nvtx_summary: pd.DataFrame
        nvtx_trace: pd.DataFrame
        openacc_summary: pd.DataFrame
        openmp_summary: pd.DataFrame
        operators: pd.DataFrame
        osrt_summary: pd.DataFrame
        phase_summary: pd.DataFrame
        phases: pd.DataFrame
        process_gpus: pd.DataFrame
        ranks: pd.DataFrame
        rules: pd.DataFrame
        source_metrics: pd.DataFrame
        um_summary: pd.DataFrame
    else:

        def __getattr__(self, name: str) -> pd.DataFrame:
            if name not in TABLES:
                raise AttributeError(unknown("table", name, TABLES))
            return self._frame(name)

    def __getitem__(self, name: str) -> pd.DataFrame:
        """The table of that name, as the attribute is.

        Raises:
            KeyError: There is no such table.
        """
        if name not in TABLES:
            raise KeyError(unknown("table", name, TABLES))
        return self._frame(name)

    def __iter__(self) -> Any:
        """The names of the tables that hold rows."""
        return iter(self._names())

    def __dir__(self) -> list[str]:
        """The tables that hold rows, and those that can be made."""
        return self._names()

    def _frame(self, name: str) -> pd.DataFrame:
        raise NotImplementedError

    def _names(self) -> list[str]:
        raise NotImplementedError


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The sentence for a name that is none of those known: the one that was meant, or all of them."""
    near = None if name.startswith("_") else did_you_mean(name, known)
    return f"there is no {what} {name}; {near or ', '.join(known)}"


def frame_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """Rows as a frame; these columns first, and there even without a row."""
    import pandas as pd

    more = dict.fromkeys(key for row in rows for key in row if key not in set(columns))
    return pd.DataFrame(list(rows), columns=[*columns, *more])


def with_parameters(
    frame: pd.DataFrame, params: Mapping[str, Mapping[str, Any]], names: Iterable[str] | None = None
) -> pd.DataFrame:
    """The frame with the parameters of each row's run as columns behind `run`.

    A parameter whose name is that of a column gets the prefix `param_`: `device` becomes `param_device`.

    Args:
        frame: A table with a column `run`.
        params: The parameters of each run.
        names: The parameters, in their order; those of the runs if not given.
    """
    import pandas as pd

    wanted = list(dict.fromkeys(key for values in params.values() for key in values) if names is None else names)
    taken = set(frame.columns)
    at = list(frame.columns).index("run") + 1
    added = {}
    for name in wanted:
        column = name if name not in taken else f"{PREFIX}{name}"
        values = {run: own.get(name) for run, own in params.items()}
        added[column] = frame["run"].map(values)
    own_frame = pd.DataFrame(added, index=frame.index)
    return pd.concat([frame.iloc[:, :at], own_frame, frame.iloc[:, at:]], axis=1)
