"""Operators of a trace as `key_averages()` counts them: by name, times with and without what they call."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsw.readers.pytorch.kineto_collect import CALL, NONE, OP

if TYPE_CHECKING:
    from nsw.readers.pytorch.kineto_collect import Trace
    from nsw.tables import Row

# Operators that can run on tensor cores: the TensorBoard plugin's list, with attention and scaled products.
_ELIGIBLE = frozenset({
    "aten::_convolution", "aten::_convolution_nogroup", "aten::conv1d", "aten::conv2d", "aten::conv3d",
    "aten::conv_tbc", "aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d",
    "aten::convolution", "aten::convolution_backward", "aten::cudnn_convolution",
    "aten::cudnn_convolution_transpose", "aten::cudnn_convolution_backward", "aten::addmm", "aten::addmm_",
    "aten::addmv", "aten::addr", "aten::matmul", "aten::mm", "aten::mv", "aten::linear", "aten::addbmm",
    "aten::baddbmm", "aten::bmm", "aten::chain_matmul", "aten::linalg_multi_dot",
    "aten::_thnn_fused_lstm_cell", "aten::_thnn_fused_gru_cell", "aten::lstm_cell", "aten::gru_cell",
    "aten::rnn_tanh_cell", "aten::rnn_relu_cell", "aten::scaled_dot_product_attention",
    "aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_efficient_attention",
    "aten::prelu", "CudnnConvolutionBackward", "CudnnConvolutionTransposeBackward", "BmmBackward0", "MmBackward",
    "AddmmBackward", "AddmvBackward", "MvBackward", "AddbmmBackward", "aten::cudnn_convolution_backward_input",
    "aten::cudnn_convolution_backward_weight", "aten::cudnn_convolution_transpose_backward_input",
    "aten::cudnn_convolution_transpose_backward_weight", "aten::_flash_attention_forward",
    "aten::_flash_attention_backward", "aten::_scaled_mm",
})  # fmt: skip


def operators(trace: Trace, device_kind: str | None) -> tuple[list[Row], float | None]:
    """Rows of `operators`, and the share of kernel time launched by operators that could use tensor cores.

    Operators of a thread nest by time; CUDA calls and annotations count as children, as in PyTorch. GPU work
    is of the operator with the same external id; `device_ns` of an operator holds that of its children. An operator
    that does nothing but call one of its own name (another overload) is one call with it, as in PyTorch's tables. The
    share is in per cent of the kernels' time whose operator is known, and counts the kernels that the lowest such
    operator launched itself; None without any.

    The profiler's own pauses (category `overhead`) are taken off the operator they fell into, as in PyTorch's table.
    A trace does not name their thread: it is the one with an operator around them; where several have one they stay.
    """
    walk = _Walk(trace)
    sums = walk.sums
    names = list(trace.names)
    has_device = bool(trace.of_operators().any())
    total_self = sum(s[2] for s in sums.values()) or None
    total_device = sum(s[4] for s in sums.values()) or None
    rows: list[Row] = []
    for name, (calls, cpu, own, on_device, own_device) in sums.items():
        row: Row = {"name": names[name], "calls": calls, "cpu_ns": cpu, "self_cpu_ns": own, "cpu_avg_ns": cpu / calls}
        if total_self:
            row |= {"self_cpu_pct": 100.0 * own / total_self}
        if has_device:
            row |= {"device_kind": device_kind, "device_ns": on_device, "self_device_ns": own_device}
            row |= {"device_avg_ns": on_device / calls}
            if total_device:
                row["self_device_pct"] = 100.0 * own_device / total_device
        rows.append(row)
    rows.sort(key=lambda row: -row["self_cpu_ns"])
    return rows, 100.0 * walk.eligible / walk.in_kernels if walk.in_kernels else None


def _device_time(trace: Trace, *, kernels: bool = False) -> dict[int, int]:
    """Time of the GPU work, or of the kernels alone, of each external id, ns."""
    gpu = trace.gpu
    times: dict[int, int] = {}
    for kind, external, duration in zip(gpu.kind, gpu.external, gpu.duration, strict=True):
        if external != NONE and not (kernels and kind):
            times[external] = times.get(external, 0) + duration
    return times


@dataclass(slots=True)
class _Open:
    """An event that has begun; times in ns."""

    end: int
    name: int
    kind: int
    duration: int
    own_device: int = 0
    own_kernels: int = 0
    eligible_below: bool = False
    children: int = 0  # how many
    children_time: int = 0
    device_below: int = 0
    same: _Open | None = None  # the first child, ended, when it is an operator of the same name

    def take_in(self) -> None:
        """Be one call with the child of the same name."""
        if (child := self.same) is not None:
            self.children_time, self.device_below = child.children_time, child.device_below
            self.own_device += child.own_device
            self.same = None


def _pauses(trace: Trace) -> Any:
    """Start, duration and thread of the profiler's pauses within operators of one thread, and within no call."""
    import numpy as np

    begin, end = np.array(trace.overhead, np.int64).reshape(-1, 2).T
    host = trace.host
    kind, start, thread = (np.asarray(column, np.int64) for column in (host.kind, host.start, host.thread))
    ends = start + np.asarray(host.duration, np.int64)
    found, threads = np.full(len(begin), NONE, np.int64), np.zeros(len(begin), np.int64)
    in_call = np.zeros(len(begin), bool)
    for number in range(len(trace.threads) if len(begin) else 0):
        for of in (OP, CALL):
            mine = np.flatnonzero((thread == number) & (kind == of))
            mine = mine[np.argsort(start[mine], kind="stable")]
            latest = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(ends[mine])])
            within = latest[np.searchsorted(start[mine], begin, "right")] >= end
            if of == CALL:
                in_call |= within
            else:
                threads += within
                found[within] = number
    kept = (threads == 1) & ~in_call
    return begin[kept], (end - begin)[kept], found[kept]


class _Walk:
    """Goes through the events of each thread, children within parents, and adds each operator up when it ends."""

    def __init__(self, trace: Trace) -> None:
        self.sums: dict[int, list[int]] = {}  # by name: calls, CPU, own CPU, device, own device
        self.eligible = self.in_kernels = 0  # ns in kernels, of operators that could use tensor cores and of all
        self._device, self._kernels = _device_time(trace), _device_time(trace, kernels=True)  # each id is taken once
        self._eligible = {number for name, number in trace.names.items() if name in _ELIGIBLE}
        self._stack: list[_Open] = []
        self._go(trace)

    def _go(self, trace: Trace) -> None:
        import numpy as np

        host = trace.host
        pauses = _pauses(trace)
        columns = [
            np.concatenate([np.asarray(own, np.int64), pauses[at]])
            for at, own in enumerate((host.start, host.duration, host.thread))
        ]
        order = np.lexsort((-columns[1], columns[0], columns[2]))
        start, duration, thread = (array("q", column.tobytes()) for column in columns)
        current, events = NONE, len(host.kind)
        for i in order.tolist():
            if thread[i] != current:
                current = thread[i]
                self._close(None)
            self._close(start[i])
            if i >= events or host.kind[i] == CALL:
                if self._stack:
                    self._stack[-1].children += 1
                    self._stack[-1].children_time += duration[i]
            else:
                self._open(host.kind[i], host.name[i], host.start[i], host.duration[i], host.external[i])
        self._close(None)

    def _open(self, kind: int, name: int, start: int, duration: int, external: int) -> None:
        opened = _Open(start + duration, name, kind, duration)
        if kind == OP:
            opened.own_device = self._device.pop(external, 0)
            opened.own_kernels = self._kernels.pop(external, 0)
        self._stack.append(opened)

    def _close(self, now: int | None) -> None:
        """End what ends by `now`; everything when None."""
        stack = self._stack
        while stack and (now is None or stack[-1].end <= now):
            done = stack.pop()
            self._judge(done)
            if done.children == 1:
                done.take_in()
            elif done.same is not None:
                self._add(done.same)
            waits = False
            if stack:
                above = stack[-1]
                above.eligible_below |= done.eligible_below
                above.children += 1
                above.children_time += done.duration
                above.device_below += done.own_device + done.device_below
                if waits := above.children == 1 and above.name == done.name and above.kind == done.kind == OP:
                    above.same = done
            if not waits:
                self._add(done)

    def _judge(self, done: _Open) -> None:
        """Count the kernels of an operator, and whether it is the lowest that could use tensor cores."""
        self.in_kernels += done.own_kernels
        if done.kind == OP and done.name in self._eligible and not done.eligible_below:
            self.eligible += done.own_kernels
            done.eligible_below = True

    def _add(self, done: _Open) -> None:
        if done.kind == OP:
            total = self.sums.setdefault(done.name, [0, 0, 0, 0, 0])
            total[0] += 1
            total[1] += done.duration
            total[2] += max(done.duration - done.children_time, 0)
            total[3] += done.own_device + done.device_below
            total[4] += done.own_device
