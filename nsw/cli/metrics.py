"""`nsw metrics`: the catalogue of metrics, what each tool calls them on a chip, and whether they are there."""

from __future__ import annotations

from enum import StrEnum
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, Final

from nsw.cli.application import command
from nsw.cli.options import Sites, TableTarget, argument, option
from nsw.cli.output import Target, print_on_stderr
from nsw.errors import Exit, UsageError, did_you_mean
from nsw.metrics import (
    find_chip,
    find_metric,
    find_metric_faults,
    metric_groups_by_name,
    metrics_by_name,
    ncu_metric_request,
    ncu_names,
    nvprof_metric_request,
)
from nsw.metrics.catalogue import LEVEL, Chip, Metric, chips_by_name
from nsw.metrics.printed_metrics import portable_name
from nsw.metrics.requests import Tool, as_tool, counters_tools, default_counters_tool
from nsw.present.terminal import TextTable, console
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.site.load import LoadedSite

Action = StrEnum("Action", ["LS", "SHOW", "CHECK", "TRANSLATE"])
ToolName = StrEnum("ToolName", ["NCU", "NVPROF"])


@command("nsw metrics show achieved_occupancy --chip H100")
def metrics(
    action: Annotated[
        Action,
        argument(
            help="ls: list metrics. show: explain one. check: whether a chip has them. translate: each tool's names."
        ),
    ],
    names: Annotated[
        list[str] | None,
        argument(
            metavar="NAME",
            help="Portable names, groups, names of ncu or nvprof; of ls also families and parts of names.",
        ),
    ] = None,
    chip: Annotated[str | None, option("--chip", help="Chip, compute capability or GPU: gh100, 9.0, H100.")] = None,
    tool: Annotated[ToolName | None, option("--tool", help="Only by this tool.")] = None,
    site: Annotated[
        str | None, option("--site", "-s", help="On this site's chip; check also asks its own ncu, once a week.")
    ] = None,
    sites: Sites = None,
    *,
    target: TableTarget,
) -> int:
    """List, explain, check and translate the metrics that a recipe can ask for, offline unless a site is named."""
    from nsw.site.load import load_site

    loaded_site = None if site is None else load_site(site, sites)
    chip_chosen = _require_chip(chip) if chip is not None or loaded_site is None else _site_chip(loaded_site)
    by = as_tool(tool.value) if tool else None
    metric_names = names or []
    if action is Action.LS:
        return _list_metrics(metric_names, chip_chosen, by, target)
    if not metric_names:
        raise UsageError("no metric was named", hint=f"`nsw metrics {action} achieved_occupancy`")
    if action is Action.SHOW:
        return _show_metrics(metric_names, chip_chosen, target)
    if action is Action.CHECK:
        return _check_metrics(metric_names, chip_chosen, by, target, _site_metric_names(loaded_site, chip_chosen, by))
    return _translate_metrics(metric_names, chip_chosen, by, target)


def _require_chip(name: str | None) -> Chip | None:
    matched_chip = find_chip(name)
    if name is not None and matched_chip is None:
        hint = (
            did_you_mean(name.lower(), chips_by_name())
            or f"chips: {', '.join(chips_by_name())}; or a product such as H100"
        )
        raise UsageError(f"there is no chip {name}", hint=hint)
    return matched_chip


def _site_chip(loaded_site: LoadedSite) -> Chip:
    from nsw.site_check.check import chip_of

    matched_chip = find_chip(chip_of(loaded_site))
    if matched_chip is None:
        raise UsageError(
            f"the chip of site {loaded_site.site.name} is not known",
            hint="name it with --chip, or at the site: gpus.chip",
        )
    return matched_chip


def _site_metric_names(loaded_site: LoadedSite | None, chip: Chip | None, tool: Tool | None) -> frozenset[str] | None:
    """The names that the site's own ncu lists, where it measures the chip and can be asked."""
    from nsw.site_check.check import site_metrics

    if loaded_site is None or chip is None or (tool or default_counters_tool(chip)) != "ncu":
        return None
    listed_metrics = site_metrics(loaded_site, chip)
    print_on_stderr(
        listed_metrics.note if listed_metrics.names is not None else f"{listed_metrics.note}: by the shipped lists"
    )
    return listed_metrics.names


# --- ls ----------------------------------------------------------------------------------------------------


def _list_metrics(words: Sequence[str], chip: Chip | None, tool: Tool | None, target: Target) -> int:
    raw = [word for word in words if "__" in word]
    if raw:
        return _list_ncu_names(raw, chip, target)
    chosen = _select_metrics(words)
    by = tool or (default_counters_tool(chip) if chip else "ncu")
    rows = []
    for metric in chosen:
        ncu = metric.measured_on(chip).expressions
        if (chip is None and tool is None) or (metric.nvprof if by == "nvprof" else ncu):
            rows.append({
                "metric": metric.name, "family": metric.family, "unit": metric.unit, "meaning": metric.meaning,
                "nvprof": metric.nvprof, "ncu": ncu[0] if ncu else None, "tool": by,
            })  # fmt: skip
    shown_groups = [] if words else metric_groups_by_name().values()
    group_rows = [{"group": g.name, "meaning": g.meaning, "metrics": list(g.metrics)} for g in shown_groups]
    name = chip.name if chip else None
    target.put_data(
        rows,
        ("metric", "family", "unit", "meaning", "nvprof", "ncu"),
        data=lambda: {"chip": name, "metrics": rows, "groups": group_rows},
        show=lambda: _show_catalogue(rows, group_rows, name, by, len(chosen) - len(rows)),
    )
    return Exit.GOOD


def _select_metrics(words: Sequence[str]) -> list[Metric]:
    """The metrics of groups, of families, and those whose names hold a word."""
    if not words:
        return list(metrics_by_name().values())
    families = {m.family for m in metrics_by_name().values()}
    metrics_found: dict[str, Metric] = {}
    for word in words:
        if word in metric_groups_by_name():
            matching = [metrics_by_name()[name] for name in metric_groups_by_name()[word].metrics]
        else:
            matching = [
                m for m in metrics_by_name().values() if m.family == word or (word not in families and word in m.name)
            ]
        if not matching:
            all_names = [*metric_groups_by_name(), *families, *metrics_by_name()]
            raise UsageError(f"there is no metric, group or family {word}", hint=did_you_mean(word, all_names))
        metrics_found |= {m.name: m for m in matching}
    return list(metrics_found.values())


def _list_ncu_names(words: Sequence[str], chip: Chip | None, target: Target) -> int:
    """Print the base names of ncu that begin with one of the words."""
    stems = tuple(word.rstrip("*") for word in words)
    rows = [
        {
            "metric": name,
            "suffixes": ncu_names.allowed_suffixes(name),
            "chips": ", ".join(ncu_names.chips_with_base_name(name)),
        }
        for name in ncu_names.base_names(chip)
        if name.startswith(stems)
    ]
    columns = ("metric", "suffixes", "chips")

    def show() -> None:
        if rows:
            console().print(TextTable(None, columns, ([r[c] for c in columns] for r in rows), wide="chips"))
        else:
            console().print(f"no metric of Nsight Compute begins with {' or '.join(stems)}")

    target.put_data(rows, columns, data=lambda: {"chip": chip.name if chip else None, "metrics": rows}, show=show)
    return Exit.GOOD


# --- show --------------------------------------------------------------------------------------------------


def _show_metrics(names: Sequence[str], chip: Chip | None, target: Target) -> int:
    described = [_metric_description(name, chip) for name in names]

    def show() -> None:
        for metric in described:
            _show_metric(metric)

    columns = ("metric", "unit", "meaning", "nvprof", "ncu", "groups")
    target.put_data(described, columns, data=lambda: {"metrics": described}, show=show)
    return Exit.GOOD


def _metric_description(name: str, chip: Chip | None) -> dict[str, Any]:
    if (metric := find_metric(name)) is not None:
        measurement = metric.measured_on(chip)
        return {
            "metric": metric.name, "unit": metric.unit, "family": metric.family, "meaning": metric.meaning,
            "nvprof": metric.nvprof, "nvprof_conversion": _conversion_text(metric), "ncu": measurement.expressions,
            "why": measurement.reason or None,
            "by_chip": {} if chip else _differences_by_chip(metric),
            "groups": [g.name for g in metric_groups_by_name().values() if metric.name in g.metrics],
        }  # fmt: skip
    if (group := metric_groups_by_name().get(name)) is not None:
        return {"group": name, "meaning": group.meaning, "metrics": group.metrics}
    if not ncu_names.is_ncu_style_name(name):
        raise UsageError(
            f"there is no metric {name}", hint=did_you_mean(name, [*metrics_by_name(), *metric_groups_by_name()])
        )
    base, _ = ncu_names.split_base_and_suffix(name)
    if ncu_names.base_name_kind(base) is None and not ncu_names.is_made_by_ncu(name):
        near = ncu_names.nearest_base_name(base, ncu_names.base_names())
        raise UsageError(f"no chip has a metric {base}", hint=f"did you mean '{near}'?" if near else None)
    return {"metric": name, "meaning": "of Nsight Compute", "portable": portable_name(name),
            "suffixes": ncu_names.allowed_suffixes(base) if ncu_names.base_name_kind(base) else None,
            "chips": ncu_names.chips_with_base_name(base)}  # fmt: skip


def _differences_by_chip(metric: Metric) -> dict[str, dict[str, Any]]:
    """What differs on some chips; chips with the same difference share an entry."""
    alike: dict[Any, list[str]] = {}
    for name, difference in metric.by_chip.items():
        alike.setdefault(difference, []).append(name)
    return {
        ", ".join(names): {"ncu": difference.expressions, "why": difference.reason}
        for difference, names in alike.items()
    }


def _conversion_text(metric: Metric) -> str | None:
    if metric.times == LEVEL:
        return "level L of 0 to 10 stands for 10 L - 5 %, give or take 5; 0 is idle"
    return f"times {metric.times}" if metric.times else None


# --- check -------------------------------------------------------------------------------------------------


def _check_metrics(
    names: Sequence[str], chip: Chip | None, tool: Tool | None, target: Target, site_names: frozenset[str] | None
) -> int:
    faults = find_metric_faults(names, chip, tool, site_names=site_names)
    rows = [{"metric": f.name, "fault": f.message, "hint": f.hint} for f in faults]

    def show() -> None:
        out = console()
        for fault in faults:
            out.print(fault.message, style="red")
            if fault.hint:
                out.print(f"  hint: {fault.hint}")
        chip_text = f" on {chip.name}" if chip else ""
        out.print(f"{plural(len(names) - len(faults), 'name')} of {len(names)} can be asked for{chip_text}")

    target.put_data(
        rows,
        ("metric", "fault", "hint"),
        data=lambda: {"chip": chip.name if chip else None, "checked": len(names), "faults": rows},
        show=show,
    )
    return Exit.BAD_INPUT if faults else Exit.GOOD


# --- translate ---------------------------------------------------------------------------------------------


def _translate_metrics(names: Sequence[str], chip: Chip | None, tool: Tool | None, target: Target) -> int:
    wrong = find_metric_faults([name for name in names if not portable_name(name)], None)
    if wrong:
        raise UsageError(wrong[0].message, hint=wrong[0].hint)
    rows = []
    for name in names:  # groups are taken apart, raw names have a portable one or none
        if (group := metric_groups_by_name().get(name)) is not None:
            rows += [_translation_row(name, find_metric(member), chip) for member in group.metrics]
        else:
            rows.append(_translation_row(name, find_metric(name) or find_metric(portable_name(name) or ""), chip))
    tools = (tool,) if tool else counters_tools(chip)
    portable = [row["metric"] or row["asked"] for row in rows]
    requests = {"ncu": ncu_metric_request(portable, chip), "nvprof": nvprof_metric_request(portable, chip)}
    lines: dict[str, str] = {tool_name: ",".join(requests[tool_name].metrics) for tool_name in tools}
    columns = ("asked", "metric", "unit", *tools, *(("conversion",) if "nvprof" in tools else ()), "why")
    chip_name = chip.name if chip else None
    shown_rows = [{c: r[c] for c in columns} for r in rows]
    target.put_data(
        rows,
        columns,
        data=lambda: {"chip": chip_name, "metrics": shown_rows, "command_line": lines},
        show=lambda: _show_translation(rows, tools, lines, chip_name),
    )
    return Exit.GOOD


def _translation_row(requested_name: str, metric: Metric | None, chip: Chip | None) -> dict[str, Any]:
    if metric is None:
        return {
            "asked": requested_name, "metric": None, "unit": None, "nvprof": None, "ncu": requested_name,
            "conversion": None, "why": "a name of Nsight Compute alone",
        }  # fmt: skip
    measurement = metric.measured_on(chip)
    return {
        "asked": requested_name, "metric": metric.name, "unit": metric.unit, "nvprof": metric.nvprof,
        "ncu": measurement.expressions[0] if measurement.expressions else None, "conversion": _conversion_text(metric),
        "why": measurement.reason or None,
    }  # fmt: skip


_LINE: Final = 80  # columns


def _show_catalogue(
    rows: Sequence[Mapping[str, Any]], groups: Sequence[Mapping[str, Any]], chip: str | None, tool: str, left_out: int
) -> None:
    """Print groups and metrics, metrics by family."""
    out = console()
    if groups:
        cells = ((g["group"], plural(len(g["metrics"]), "metric"), g["meaning"]) for g in groups)
        out.print(TextTable("groups", ("group", "holds>", "meaning"), cells, wide="meaning"))
    title = "metrics" + (f" on {chip} by {tool}" if chip else "")
    ordered = sorted(rows, key=lambda r: (r["family"], r["metric"]))
    wide = tool if chip else "meaning"
    columns = ("family", "metric", "unit", wide)
    cells_of = ([r[c] or "" for c in columns] for r in ordered)
    out.print(TextTable(title, columns, cells_of, wide=wide, droppable=() if chip else ("family",)))
    if left_out:
        out.print(f"({plural(left_out, 'metric')} more that {tool} does not measure{' on ' + chip if chip else ''}:"
                  " `nsw metrics show NAME` says why)", style="dim")  # fmt: skip


def _show_metric(metric: Mapping[str, Any]) -> None:
    """Print one metric or group in full."""
    out = console()
    if "group" in metric:
        out.print(_wrap_text(f"{metric['group']} (group): {metric['meaning']}"), style="bold")
        out.print(_wrap_text(" ".join(metric["metrics"]), "  ", "  "))
        return
    out.print(_wrap_text(f"{metric['metric']}: {metric['meaning']}"), style="bold")
    if "portable" in metric:
        lines = [("portable name", metric["portable"] or "none"), ("takes", metric["suffixes"]),
                 ("on", ", ".join(metric["chips"]))]  # fmt: skip
    else:
        lines = [
            ("unit", metric["unit"] or "none: a ratio"),
            ("nvprof", (metric["nvprof"] or "does not measure it")
             + (f" ({metric['nvprof_conversion']})" if metric["nvprof_conversion"] else "")),
            ("ncu", " |\n".join(metric["ncu"]) or "does not measure it"),
            ("why", metric["why"]),
            *((chip, _chip_difference_text(entry)) for chip, entry in metric["by_chip"].items()),
            ("groups", ", ".join(metric["groups"])),
        ]  # fmt: skip
    for head, text in lines:
        if text:
            first, *more_lines = text.split("\n")
            out.print(_wrap_text(first, f"  {head + ':':<10} ", " " * 13))
            for more_line in more_lines:
                out.print(_wrap_text(more_line, " " * 13, " " * 15))


def _wrap_text(text: str, first: str = "", indent: str = "") -> str:
    """A text in lines of at most _LINE columns, wherever it is printed; a longer word has a line of its own."""
    return fill(text, _LINE, initial_indent=first, subsequent_indent=indent, break_long_words=False,
                break_on_hyphens=False)  # fmt: skip


def _chip_difference_text(entry: Mapping[str, Any]) -> str:
    """What a chip that differs has instead."""
    return " | ".join(entry["ncu"]) + f" ({entry['why']})" if entry["ncu"] else f"not there: {entry['why']}"


def _show_translation(
    rows: Sequence[Mapping[str, Any]], tools: Sequence[str], lines: Mapping[str, str], chip: str | None
) -> None:
    """Print what each tool calls the metrics, and the argument that asks for all of them."""
    out = console()
    columns = ("metric", "unit", *tools)
    cells = ([r["metric"] or r["asked"], r["unit"] or "", *(r[t] or "-" for t in tools)] for r in rows)
    out.print(TextTable(f"on {chip}" if chip else None, columns, cells, wide=tools[-1]))
    for row in rows:
        if row["why"]:
            out.print(f"{row['metric'] or row['asked']}: {row['why']}")
        if row["conversion"] and "nvprof" in tools:
            out.print(f"{row['metric']}: nvprof's {row['conversion']}")
    for tool, line in lines.items():
        if line:
            out.print(f"{tool} --metrics {line}", soft_wrap=True)
