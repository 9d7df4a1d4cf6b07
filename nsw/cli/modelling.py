"""`nsw model`: laws of growth of a campaign, and what will limit where nothing was measured."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

from nsw.analysis.growth import FIGURE, ITERATION, KERNELS, Growth, Series
from nsw.analysis.laws import ENOUGH, TRIED_TIMES, Estimate
from nsw.campaign.answers import results
from nsw.campaign.modelling import growth_of
from nsw.campaign.selection import Selection, campaign_and_runs
from nsw.cli.application import command
from nsw.cli.options import CampaignAndRuns, ReadingLimits, TableTarget, option
from nsw.cli.summarizing import answer_apart
from nsw.errors import Exit, UsageError
from nsw.present.terminal import TextTable, console
from nsw.quantities import number
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.cli.output import Target
    from nsw.engine.folder import CampaignFolder

_TITLES: Final = {FIGURE: "figure", ITERATION: "time", KERNELS: "kernels"}


@command("nsw model --over gpus --at 256")
def model(
    which: CampaignAndRuns,
    over: Annotated[
        str | None,
        option("--over", metavar="NAME", help="The parameter, or two: gpus,batch; default: that of report.scaling."),
    ] = None,
    at: Annotated[
        str | None,
        option(
            "--at", metavar="N", help="Where to predict, a value a parameter; default: 4 times the largest measured."
        ),
    ] = None,
    figure: Annotated[str | None, option("--figure", metavar="NAME", help="This figure, not the recipe's.")] = None,
    *,
    target: TableTarget,
    limits: ReadingLimits,
) -> int:
    """Fit laws of growth to a campaign, and say what limits with more GPUs or a larger batch."""
    folder, selection = campaign_and_runs(which)
    names, point = over.split(",") if over else [], _parse_point(at)
    return answer_apart(
        folder, limits, partial(_put_model, folder, selection, figure=figure, over=names, at=point, target=target)
    )


def _put_model(
    folder: CampaignFolder, selection: Selection, *, figure: str | None, over: Sequence[str], at: Sequence[float],
    target: Target,
) -> int:  # fmt: skip
    with results(folder, selection, figure) as campaign_results:
        series_list = growth_of(campaign_results, over, at)
        note = campaign_results.note
    rows = [_growth_row(series, row) for series in series_list for row in series.rows]
    target.put_data(
        rows,
        list(rows[0]),
        data=lambda: {
            "campaign": folder.id,
            "note": note,
            "sentences": _prediction_sentences(series_list),
            "rows": rows,
        },
        show=lambda: _show_model(series_list, note),
        note=note,
    )
    return Exit.GOOD


def _parse_point(text: str | None) -> list[float]:
    try:
        point = [float(word) for word in text.split(",")] if text else []
    except ValueError:
        point = [math.nan]
    if not all(math.isfinite(value) and value > 0 for value in point):
        raise UsageError(f"--at {text}: expected a number above zero for each parameter", hint="such as --at 256")
    return point


def _growth_row(series: Series, row: Growth) -> dict[str, Any]:
    """A law of growth as data; a share is in per cent of an iteration."""
    law, share = row.law, row.share_pct
    return {
        **{f"param_{name}": value for name, value in series.params.items()},
        "kind": row.kind,
        "name": row.name,
        "unit": row.unit,
        "first": row.first,
        "last": row.last,
        "law": law and _formula(series, row),
        "determined": law is not None and not law.undetermined,
        "error_pct": law and 100 * law.error,
        "noise_pct": None if law is None or law.noise is None else 100 * law.noise,
        **{f"at_{name}": value for name, value in zip(series.over, series.point, strict=True)},
        "value": row.at.value,
        "low": row.at.low,
        "high": row.at.high,
        "share_pct": share and share.value,
        "share_low_pct": share and share.low,
        "share_high_pct": share and share.high,
        "missing": row.at.missing or (share and share.missing),
    }


def _formula(series: Series, row: Growth) -> str:
    assert row.law is not None
    return f"{' '.join(series.over)} / ({row.law.formula})" if row.is_rate else row.law.formula


def _point_text(names: Sequence[str], point: Sequence[float]) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in zip(names, point, strict=True))


def _range_text(estimate: Estimate | None, *, percent: bool = False) -> str:
    """`31 to 60 %`; empty where there is no value."""
    if estimate is None or estimate.value is None:
        return ""
    texts = [
        f"{value:.0f}" if percent else number(value) for value in (estimate.low, estimate.high) if value is not None
    ]
    return f"{' to '.join(texts)}{' %' if percent else ''}" if texts else "not known"


def _prediction_sentences(series_list: Sequence[Series]) -> list[str]:
    """What is predicted, with its range, or why nothing is."""
    sentences: list[str] = []
    reasons = Counter[str]()
    for series in series_list:
        others = ", ".join(f"{name}={value}" for name, value in series.params.items())
        where = f"{f'{others}, ' if others else ''}{_point_text(series.over, series.point)}"
        if parts := series.by_share:
            texts = [f"{part.name} {_share_text(part)}" for part in parts]
            sentences.append(f"{where}: of an iteration {', '.join(texts)}")
        for row in series.rows:
            if row.kind == FIGURE and row.at.value is not None:
                unit = f" {row.unit}" if row.unit else ""
                between = f", {_range_text(row.at)}" if row.at.low is not None else ""
                sentences.append(f"{where}: {row.name} {number(row.at.value)}{unit}{between}")
        reasons.update(row.at.missing for row in series.rows if row.at.missing)
    sentences += [f"{plural(count, 'law')} without a prediction: {reason}" for reason, count in reasons.items()]
    first = series_list[0]
    if reasons:
        names = " and of ".join(first.over)
        sentences.append(f"measure {ENOUGH} values of {names} or more, with `repeats: 3` in each pass")
    elif first.extrapolation_factor > TRIED_TIMES:
        sentences.append(
            f"{_point_text(first.over, first.point)} is {first.extrapolation_factor:.3g} times the largest measured"
            f" value; laws were tried up to {TRIED_TIMES} times"
        )
    return sentences


def _share_text(part: Growth) -> str:
    share = part.share_pct
    assert share is not None
    between = f" ({_range_text(share, percent=True)})" if share.low is not None else ""
    return f"{share.value:.0f} %{between}"


def _show_model(series_list: Sequence[Series], note: str | None) -> None:
    """Sentences, and below them a table law by law."""
    out = console()
    if note:
        out.print(note, style="yellow")
    for sentence in _prediction_sentences(series_list):
        out.print(sentence)
    for series in series_list:
        out.print()
        out.print(_laws_table(series))


def _laws_table(series: Series) -> TextTable:
    """A row a law; shares and ranges where some are known."""
    first, last = (_point_text(series.over, point) for point in (series.measured[0], series.measured[-1]))
    rows = series.rows
    columns: dict[str, list[Any]] = {
        "": [_TITLES[row.kind] for row in rows],
        "of": [f"{row.name}, {row.unit}" if row.unit else row.name for row in rows],
        f"{first}>": [number(row.first) for row in rows],
        f"{last}>": [number(row.last) for row in rows],
        "law": [_formula(series, row) if row.law and not row.law.undetermined else "not determined" for row in rows],
        "error>": [f"{100 * row.law.error:.1f} %" if row.law and not row.law.undetermined else None for row in rows],
        f"{_point_text(series.over, series.point)}>": [row.at.value and number(row.at.value) for row in rows],
        "range": [_range_text(row.at) for row in rows],
        "share>": [row.share_pct and row.share_pct.value and f"{row.share_pct.value:.0f} %" for row in rows],
        "its range": [_range_text(row.share_pct, percent=True) for row in rows],
    }
    columns = {head: cells for head, cells in columns.items() if any(cells)}
    title = ", ".join(f"{name}={value}" for name, value in series.params.items()) or None
    return TextTable(title, list(columns), zip(*columns.values(), strict=True), wide="law", elsewhere="--json")
