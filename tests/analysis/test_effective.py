"""Effective rates of a published measurement, and the roofline that they make."""

import io

import pytest

from nsw.analysis.effective import AskedLink, AskedModel, model_case, model_flop_rate, predict_by_first_rates
from nsw.analysis.summary import CampaignData, ReportRequest, summarize
from nsw.campaign.answers import _models_by_case as models_of
from nsw.present.emit import flat_rows
from nsw.present.summary_view import show_summary
from nsw.present.terminal import console
from nsw.recipe.load import load_recipe_text

from .made import make_run

# A training step of two layers on two GPUs: D inputs, H hidden, C classes, B images, p processes (a course's homework,
# whose printed medians are these, in us; its answers are 1.632730e+12 FLOP/s, 1.2720e+10 and 7.9502e+09 byte/s)
D, H, C, B, P = 784, 512, 10, 3000, 2
GPU_MEDIANS = {
    "backward GEMM 3": 688.815, "forward GEMM 1": 470.879, "backward GEMM 1": 234.144, "forward GEMM 2": 100.112,
    "cudaMemcpyHostToDevice": 131.055, "cudaMemcpyDeviceToHost": 124.960,
}  # fmt: skip
CPU_MEDIANS = {"MPI_Allreduce": 409.599, "batch iteration": 4958.0}
GEMMS = ("forward GEMM 1", "forward GEMM 2", "backward GEMM 1", "backward GEMM 3")
COPIES = ("cudaMemcpyDeviceToHost", "cudaMemcpyHostToDevice")
BYTES = 2 * (H * D + H + C * H + C) * 4
FLOP = 4 * (B / P) * H * (D + C)


def tables(**more):
    return {
        "nvtx_gpu_summary": [
            {"name": name, "calls": 40, "projected_ns": 0.0, "projected_med_ns": us * 1e3}
            for name, us in GPU_MEDIANS.items()
        ],
        "nvtx_summary": [{"name": name, "calls": 40, "med_ns": us * 1e3} for name, us in CPU_MEDIANS.items()],
    } | more


def asked(**changed):
    links = (AskedLink("pci", COPIES, "gpu", BYTES), AskedLink("mpi", ("MPI_Allreduce",), "cpu", BYTES))
    return AskedModel(**{"flop": FLOP, "ranges": GEMMS, "links": links, "iteration": "batch iteration"} | changed)


def test_the_published_rates_come_out():
    found = model_case("case", {}, asked(), tables())
    assert found.flop_per_s == pytest.approx(1.632730e12, rel=1e-4)
    pci, mpi = found.links
    assert pci.bytes_per_s == pytest.approx(1.2720e10, rel=1e-4)
    assert mpi.bytes_per_s == pytest.approx(7.9502e9, rel=1e-4)
    assert found.intensity == pytest.approx(FLOP / (2 * BYTES))
    assert found.measured_flop_per_s == pytest.approx(FLOP / 4958e-6)


def test_the_curve_is_that_of_the_source_where_links_move_alike():
    found = model_case("case", {}, asked(), tables())
    p, (pci, mpi), ai = found.flop_per_s, found.links, found.intensity
    source = ai / (ai / p + 0.5 * (1 / pci.bytes_per_s + 1 / mpi.bytes_per_s))
    (only,) = predict_by_first_rates([found])
    assert only.modelled_flop_per_s == pytest.approx(source)
    assert model_flop_rate(1e9, p, [(1.0, 1e9)]) == pytest.approx(p, rel=1e-2)  # much computing for each byte


def test_a_sweep_is_modelled_by_the_rates_of_its_first_case():
    first = model_case("a", {"batch": 3000}, asked(), tables())
    second = model_case("b", {"batch": 6000}, asked(flop=2 * FLOP), tables())
    one, two = predict_by_first_rates([first, second])
    assert two.intensity == pytest.approx(2 * one.intensity)
    assert one.flop_per_s > two.modelled_flop_per_s > one.modelled_flop_per_s


def test_a_range_that_occurs_twice_an_iteration_counts_twice():
    rows = tables()
    rows["nvtx_summary"][0] = {"name": "MPI_Allreduce", "calls": 80, "med_ns": 100.0}
    assert model_case("case", {}, asked(), rows).links[1].seconds == pytest.approx(200e-9)


def test_without_a_median_the_mean_is_taken():
    rows = tables()
    rows["nvtx_summary"][0] = {"name": "MPI_Allreduce", "calls": 40, "med_ns": None, "total_ns": 4000.0}
    assert model_case("case", {}, asked(), rows).links[1].seconds == pytest.approx(100e-9)


def test_bytes_can_be_those_of_the_copies_or_collectives_that_were_measured():
    links = (AskedLink("pci", COPIES, "gpu", "copies"), AskedLink("mpi", ("MPI_Allreduce",), "cpu", "collectives"))
    more = {
        "gpu_summary": [
            {"kind": "memcpy", "name": "[CUDA memcpy HtoD]", "total_bytes": 4000.0},
            {"kind": "memcpy", "name": "[CUDA memcpy DtoH]", "total_bytes": 4000.0},
            {"kind": "memcpy", "name": "[CUDA memcpy DtoD]", "total_bytes": 9e9},
        ],
        "communication": [{"name": "AllReduce", "total_bytes": 400.0}],
    }
    found = model_case("case", {}, asked(links=links), tables(**more))
    assert [link.bytes for link in found.links] == [200.0, 10.0]


@pytest.mark.parametrize(
    ("changed", "rows", "missing"),
    [
        ({"ranges": ("forward",)}, {}, "no NVTX range with work of the GPU is called 'forward'"),
        ({"links": (AskedLink("mpi", ("Allreduce",), "cpu", 1.0),)}, {}, "no NVTX range is called 'Allreduce'"),
        ({"links": (AskedLink("mpi", ("MPI_Allreduce",), "cpu", "collectives"),)},
         {"communication": [{"name": "x", "total_bytes": None}]}, "do not record the bytes of collectives"),
        ({"links": (AskedLink("pci", COPIES, "gpu", "copies"),), "iteration": None}, {}, "name the range that is"),
        ({"ranges": ("idle",)}, {"nvtx_gpu_summary": [{"name": "idle", "calls": 1, "projected_ns": 0.0}]}, "no time"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said_and_nothing_is_made_up(changed, rows, missing):
    found = model_case("case", {}, asked(**changed), tables(**rows))
    assert missing in found.missing
    assert found.flop_per_s is None
    assert predict_by_first_rates([found]) == (found,)


RECIPE = """nsw: 1
name: t
app: {command: ./train}
matrix: {batch: [3000, 6000]}
report:
  model:
    flop: '{{ 4 * batch / 2 * 512 * (784 + 10) }}'
    ranges: [forward GEMM 1, forward GEMM 2, backward GEMM 1, backward GEMM 3]
    iteration: batch iteration
    links:
      pci: {ranges: [cudaMemcpyDeviceToHost, cudaMemcpyHostToDevice], bytes: 3256400}
      mpi: {ranges: [MPI_Allreduce], clock: cpu, bytes: '{{ 2 * (784*512 + 512 + 512*10 + 10) * 4 }}'}
"""


@pytest.fixture
def summary():
    recipe = load_recipe_text(RECIPE).recipe
    runs = [make_run(f"r{b}", f"c{b}", params={"batch": b}, pass_kind="timeline") for b in (3000, 6000)]
    rows = {name: [row | {"run": run.id} for run in runs for row in some] for name, some in tables().items()}
    models = models_of(recipe.report.model, {run.case_id: run.params for run in runs})
    return summarize(CampaignData("c", "s", None, runs, rows), ReportRequest(models=models))


def test_the_recipes_formulas_are_computed_for_each_case(summary):
    first, second = summary.model
    assert first.flop_per_s == pytest.approx(1.632730e12, rel=1e-4)
    assert second.flop == 2 * first.flop
    assert flat_rows(summary, "model")[0]["mpi_bytes_per_s"] == pytest.approx(7.9502e9, rel=1e-4)


def test_the_rates_are_shown_with_what_the_model_and_the_program_do(summary, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    stream = io.StringIO()
    show_summary(console(stream), summary, full=True)
    assert "effective rates; modelled by those of c3000" in stream.getvalue()
    assert "computing (TFLOP/s)   pci (GB/s)   mpi (GB/s)" in stream.getvalue()


def test_a_formula_that_gives_no_number_is_said_of_its_case():
    recipe = load_recipe_text(RECIPE.replace("4 * batch", "0 * batch")).recipe
    found = models_of(recipe.report.model, {"c": {"batch": 3000}})
    assert found == {"c": "expected a number above 0, found 0.0"}
