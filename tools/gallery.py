"""Makes the pages of the documentation's gallery of recordings in the repository: `python tools/gallery.py FOLDER`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from nsw.analysis.answer.registry import answer_blocks  # noqa: E402
from nsw.present.emit import FLAT, flat_rows  # noqa: E402
from nsw.present.page import EvidenceRows, page  # noqa: E402
from tests.analysis.recorded import answer  # noqa: E402

CPU = "tests/fixtures/cpu"
_STUDY = "The study is in [studies](studies/amp_networks.md)."
ENTRIES = {
    "alexnet.html": (
        "AlexNet on one, two and four GPUs",
        "Nsight Systems on 4 H200: how training scales, which GPU comes late, which kernels cost most, an iteration.",
    ),
    "comparison.html": (
        "One GPU beside four",
        "`nsw compare` of two sides of that campaign: verdicts, intervals, and where the time of an iteration went.",
    ),
    "networks.html": (
        "Five networks, FP32 and mixed precision",
        f"PyTorch's profiler on an H100: which networks does mixed precision make faster? {_STUDY}",
    ),
    "stencil.html": (
        "A stencil in three variants",
        "Hardware counters of Nsight Compute on an H100: roofline, and what binds each kernel.",
    ),
    "cpu.html": (
        "A CPU program under four profilers",
        "A heat equation under perf, perf stat, gprof and py-spy, read without a campaign.",
    ),
}


def main() -> None:
    """Write the pages and gallery.json, which lists them."""
    folder = Path(sys.argv[1]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="nsw-gallery-") as name:
        environment = os.environ | {"NSW_ROOT": name, "PYTHONPATH": str(ROOT)}

        def nsw(*words: str) -> None:
            command = [sys.executable, "-m", "nsw", *words]
            subprocess.run(command, check=True, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL)

        nsw("run", "recipes/alexnet_scaling.yaml", "--site", "demo")
        nsw("report", "-o", str(folder / "alexnet.html"))
        (campaign,) = (path for path in Path(name).iterdir() if path.is_dir())
        nsw("compare", f"{campaign}:gpus=1", f"{campaign}:gpus=4", "-o", str(folder / "comparison.html"))
        profiles = [f"{CPU}/{file}" for file in ("host.perf.txt", "host.perfstat.json", "host.gprof.txt",
                    "host.rate100.pyspy.txt")]  # fmt: skip
        nsw("read", *profiles, "-o", str(folder / "cpu.html"))
    for recorded, file in (("amp", "networks.html"), ("stencil", "stencil.html")):
        summary = answer(recorded)
        tables = [EvidenceRows(name, flat_rows(summary, name), f"nsw summarize --table {name}") for name in FLAT]
        (folder / file).write_text(
            page(ENTRIES[file][0], list(answer_blocks(summary)), behind=tables), encoding="utf-8"
        )
    listed = [{"file": file, "title": title, "text": text} for file, (title, text) in ENTRIES.items()]
    (folder / "gallery.json").write_text(json.dumps(listed), encoding="utf-8")


if __name__ == "__main__":
    main()
