"""Writes docs/causes.md: every cause that nsw names, from nsw/analysis/rules/causes.toml.

python tools/causes_page.py            writes the page
python tools/causes_page.py --check    says whether it is current
"""

from __future__ import annotations

import sys
from pathlib import Path

from nsw.analysis.rules.causes import Cause, Group, causes

PAGE = Path(__file__).parents[1] / "docs" / "causes.md"
HEAD = """# Causes

Made from `nsw/analysis/rules/causes.toml` by `tools/causes_page.py`; a test keeps it current. Each sentence of an
answer ([answers.md](answers.md)) has the id of its cause, in JSON too (`cause`). A cause without a rule yet is here
with what would show it. *Shown by* begins with the pass that it takes (`- timeline: {}`, `- counters: {}`,
`- host: {tool: ...}`), and `nsw summarize` prints the sentence ([an idle GPU](howto/idle.md)). *Bound* is the most that
a cure wins.
"""
TITLES: dict[Group, str] = {
    "kernels": "Kernels",
    "healthy": "Healthy: what binds, and nothing is wasted",
    "timeline": "Timeline of one GPU",
    "gpus": "Several GPUs",
    "host": "CPUs and libraries",
}
FRAMEWORKS = {"any": "", "cuda": "CUDA: ", "openacc": "OpenACC: ", "openmp": "OpenMP: ", "pytorch": "PyTorch: ",
              "jax": "JAX: ", "python": "CuPy, Numba, TensorFlow: ", "triton": "Triton: ",
              "library": "Libraries: "}  # fmt: skip


def page() -> str:
    """The whole page."""
    sections = [_section(title, [c for c in causes().values() if c.group == group]) for group, title in TITLES.items()]
    return "\n".join([HEAD, *sections])


def _section(title: str, members: list[Cause]) -> str:
    rows = [f"| {c.id} | {c.cause} | {_shown_by(c)} | {c.alike} | {_remedies(c)} | {c.bound} |" for c in members]
    head = "| id | cause | shown by | looks alike | try | bound |\n|---|---|---|---|---|---|"
    return "\n".join([f"## {title}", "", head, *(_in_code(row) for row in rows), ""])


def _shown_by(cause: Cause) -> str:
    asks = f"; a second stage asks for `{', '.join(cause.asks)}`" if cause.asks else ""
    return f"{cause.measured_by}: {cause.shows}{asks}"


def _remedies(cause: Cause) -> str:
    return " ".join(FRAMEWORKS[framework] + text for framework, text in cause.remedies.items())


def _in_code(row: str) -> str:
    """Names with underscores, which Markdown would take for emphasis, escaped outside of code."""
    pieces = row.split("`")
    return "`".join(piece if n % 2 else piece.replace("_", r"\_").replace("*", r"\*") for n, piece in enumerate(pieces))


def main() -> None:
    """Write the page, or with --check only say whether it is current."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        sys.exit(f"{PAGE} is not current: python tools/causes_page.py")


if __name__ == "__main__":
    main()
