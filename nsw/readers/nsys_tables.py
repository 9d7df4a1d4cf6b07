"""From the tables of an nsys export to the tables of nsw, whatever the export was read from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from nsw.readers import nsys_calls, nsys_facts, nsys_gpu, nsys_nvtx, nsys_traces
from nsw.readers.nsys_diagnostics import diagnostics
from nsw.readers.nsys_projection import nvtx_gpu_summary
from nsw.readers.nsys_source import TableFault
from nsw.readers.nsys_statistics import with_shares

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsw.readers.model import Options, Report
    from nsw.readers.nsys_source import Source
    from nsw.tables import Row, TableData

T = TypeVar("T")

_DAMAGED = "export the report again, or copy the file again"


class Filling:
    """Fills a report from an export, table by table: a damaged one is left out and named.

    Args:
        report: What is filled.
        source: The export.
        again: The same export read another way, tried once for each table that fails; None: there is none.
    """

    def __init__(self, report: Report, source: Source, again: Source | None = None) -> None:
        self.report = report
        self._source = source
        self._again = again

    def fill(self, options: Options) -> None:
        """Make every table that is wanted and possible."""
        report = self.report
        no_entries: dict[str, str] = {}
        report.tool_version = self._try(nsys_facts.metadata, no_entries).get("EXPORT_PRODUCT_VERSION")
        report.problems += self._try(diagnostics, [])
        self._origin = self._try(nsys_facts.origin, nsys_facts.Origin())
        self._gpu(options)
        if options.wants("api_summary"):
            self._add("api_summary", self._try(nsys_calls.api_summary, []))
        if options.wants("osrt_summary"):
            self._add("osrt_summary", self._try(nsys_calls.osrt_summary, []))
        if options.wants("openacc_summary"):
            self._add("openacc_summary", self._try(nsys_calls.openacc_summary, []))
        if options.wants("um_summary"):
            name = self._origin.gpu_name
            self._add("um_summary", self._try(lambda s: nsys_gpu.um_summary(s, name), []))
        self._nvtx(options)
        self._traces(options)
        if options.wants("facts"):
            self._add("facts", self._try(nsys_facts.facts, []))

    def _gpu(self, options: Options) -> None:
        if not options.wants("gpu_summary") and not options.wants("communication"):
            return
        work = self._try(nsys_gpu.gpu_work, nsys_gpu.GpuWork())
        if options.wants("gpu_summary"):
            self._add("gpu_summary", work.summary)
        if options.wants("communication"):
            nothing: list[Row] = []
            mpi = self._try(nsys_calls.mpi_summary, nothing)
            self._add("communication", with_shares(work.communication) + with_shares(mpi))
        if work.graph_launches:
            share = "unknown" if work.graph_share is None else f"{work.graph_share:.1f} %"
            self.report.warn(
                f"{work.graph_launches} CUDA graph launches, {share} of the GPU time, are traced as whole"
                " graphs and not attributed to kernels",
                fix="profile with --cuda-graph-trace=node to see the kernels inside (slower)",
            )

    def _nvtx(self, options: Options) -> None:
        if not options.wants("nvtx_summary") and not options.wants("nvtx_gpu_summary"):
            return

        def both(source: Source) -> tuple[list[Row], list[Row], int]:
            ranges = nsys_nvtx.nvtx_ranges(source)
            if ranges is None:
                return [], [], 0
            timed = nsys_nvtx.nvtx_summary(ranges) if options.wants("nvtx_summary") else []
            projected = nvtx_gpu_summary(source, ranges) if options.wants("nvtx_gpu_summary") else []
            return timed, projected, ranges.unended

        nothing: tuple[list[Row], list[Row], int] = ([], [], 0)
        timed, projected, unended = self._try(both, nothing)
        self._add("nvtx_summary", timed)
        self._add("nvtx_gpu_summary", projected)
        if unended:
            self.report.warn(
                f"{unended} NVTX ranges were never ended; they are taken to last to the last NVTX event"
            )

    def _traces(self, options: Options) -> None:
        name = self._origin.gpu_name
        makers: dict[str, Callable[[Source], TableData | None]] = {
            "gpu_trace": lambda s: nsys_traces.gpu_trace(s, name),
            "api_trace": nsys_traces.api_trace,
        }
        for table, make in makers.items():
            if options.wants(table, default=False):
                data = self._try(make, None)
                if data is not None and len(data):
                    self.report.tables[table] = data

    def _add(self, table: str, rows: list[Row]) -> None:
        if rows:
            shared = {"host": self._origin.host, "rank": self._origin.rank}
            self.report.tables[table] = [shared | row for row in rows]

    def _try(self, make: Callable[[Source], T], otherwise: T) -> T:
        """What `make` gives, or `otherwise` with an error that names the damaged table."""
        try:
            return make(self._source)
        except TableFault as fault:
            first: Any = fault
        if self._again is not None:
            try:
                return make(self._again)
            except TableFault as fault:
                first = fault
        message = f"table {first.table} of the export cannot be read: {first.what}"
        if not any(p.message == message for p in self.report.problems):
            self.report.error(message, fix=_DAMAGED)
        return otherwise
