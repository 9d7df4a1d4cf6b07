"""Write docs/metric-names.md, metrics with each tool's own name: `python tools/metrics_page.py [--check]`."""

from __future__ import annotations

import sys
from pathlib import Path

from nsw.metrics.catalogue import Group, Metric, metric_groups_by_name, metrics_by_name

PAGE = Path(__file__).parents[1] / "docs" / "metric-names.md"
HEAD = """# Names of metrics, and what groups hold

<!-- made by tools/metrics_page.py from nsw/metrics/data: change it there -->

`metrics:` of a pass `counters` takes these names and groups, such as `metrics: [achieved_occupancy, dram_throughput,
stalls]` ([metrics.md](metrics.md#names-in-a-recipe)). `nsw metrics ls` prints them too, and `nsw metrics check NAME
--chip H100` says whether a chip has one. A dash: the tool does not measure it. For chips that differ, and for other
names of ncu: `nsw metrics show NAME`.
"""


def page() -> str:
    """The page as it should be."""
    families: dict[str, list[Metric]] = {}
    for metric in metrics_by_name().values():
        families.setdefault(metric.family, []).append(metric)
    groups = [_group_row(group) for group in metric_groups_by_name().values()]
    sections = [_section(family, families[family]) for family in sorted(families)]
    return "\n".join(
        [HEAD, "## Groups", "", "| group | what it shows | metrics |", "|---|---|---|", *groups, *sections]
    )


def _group_row(group: Group) -> str:
    return f"| `{group.name}` | {group.meaning} | {' '.join(f'`{name}`' for name in group.metrics)} |"


def _section(family: str, metrics: list[Metric]) -> str:
    head = "| metric | unit | meaning | nvprof | ncu |\n|---|---|---|---|---|"
    rows = [
        f"| `{m.name}` | {m.unit} | {m.meaning} | {_code(m.nvprof)} | {_code(next(iter(m.ncu.expressions), None))} |"
        for m in sorted(metrics, key=lambda metric: metric.name)
    ]
    return "\n".join(["", f"## {family}", "", head, *rows, ""]).rstrip("\n")


def _code(expression: str | None) -> str:
    return f"`{expression}`" if expression else "-"


def main() -> None:
    """Write the page, or with --check only say whether it is current."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page() + "\n", encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page() + "\n":
        sys.exit(f"{PAGE} is not current: python tools/metrics_page.py")


if __name__ == "__main__":
    main()
