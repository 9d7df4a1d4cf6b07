"""Rows of metrics and events as nvprof prints them, from text and CSV, of summaries and single launches."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Final

from nsw.readers.nvprof.devices import split_device
from nsw.readers.nvprof.text.values import (
    Value,
    in_unit,
    metric_value,
    of_mean,
)

if TYPE_CHECKING:
    from nsw.readers.nvprof.table_builder import Columns
    from nsw.readers.nvprof.text.state import Sink, Stream

_SHARED: Final = ("block", "rank", "pid", "device", "device_name", "metric", "description", "unit", "text")
_OWN: Final = ("invocations", "min", "min_pm", "max", "max_pm", "avg", "avg_pm", "value", "value_pm", "launch_id")
_NO_LAUNCH: Final = (None, None, None)
_CORRELATION: Final = re.compile(r"\s+\[\d+\]\Z")


def _table(sink: Sink) -> Columns:
    return sink.table("metrics", _SHARED, _OWN, "kernel")


def add_metric(
    sink: Sink, stream: Stream, kernel: str, metric: str, description: str | None, calls: int | None, values: list[str]
) -> None:
    """One row; `values` are least, greatest, mean as printed (a total of events is their sum: not kept)."""
    *range_, mean = [metric_value(v) for v in values[:3]]
    read = [*range_, of_mean(mean, range_[-1].number if range_ else None)]
    last = read[-1]
    where = (*stream.where(), stream.device, stream.device_name)
    spread = chain.from_iterable(in_unit(value, last.unit) for value in read)
    shared = (*where, metric, description, last.unit, last.text_alone, _plain(kernel))
    _table(sink).append(shared, (calls, *spread, *_NO_LAUNCH))


def add_value(
    sink: Sink, stream: Stream, launch: int | None, kernel: str, metric: str, device: str, value: Value
) -> None:
    """A row of one launch."""
    shared = (*_origin(stream, device), metric, None, value.unit, value.text_alone, kernel)
    _table(sink).append(shared, (*[None] * 7, value.number, value.pm, launch))


def _origin(stream: Stream, device: str | None) -> tuple[int | str | None, ...]:
    if device is None:
        return (*stream.where(), stream.device, stream.device_name)
    name, ordinal = split_device(device)
    return (*stream.where(), ordinal, name)


def _plain(kernel: str) -> str:
    return _CORRELATION.sub("", kernel) if kernel.endswith("]") else kernel
