"""Metrics that were asked for and are not in the report: which, of how many kernels, why."""

from nsw.analysis.unmeasured import find_unmeasured_metrics, unmeasured_metric_sentences
from nsw.readers.detect import read
from nsw.tables import full_rows
from tests.analysis.test_diagnosis import recordings

IPC = "sm__inst_executed.avg.per_cycle_active"
H200 = {"device_name": "NVIDIA H200", "compute_capability": "9.0"}


def launches(*kernels, **more):
    return [{"kernel": kernel, "launch_id": n, **H200, **more} for n, kernel in enumerate(kernels)]


def metric(kernel, name, value=1.0, **more):
    return {"kernel": kernel, "metric": name, "value": value, **more}


def check(asked, metrics, kernels=("a", "b"), *, tool="ncu", chip="gh100", replay="kernel"):
    return find_unmeasured_metrics(asked, tool, chip, replay, metrics, launches(*kernels))


def test_a_metric_that_no_kernel_has_is_reported():
    (one,) = check(["ipc"], [metric("a", "dram__bytes.sum"), metric("b", "dram__bytes.sum")])
    assert (one.name, one.without, one.kernels) == ("ipc", ("a", "b"), 2)
    ((text, hint),) = unmeasured_metric_sentences([one])
    assert text == "metric missing: ipc, of all 2 kernels: ncu left it out and gave no reason"
    assert "nsw metrics check" in hint


def test_a_metric_that_every_kernel_has_is_not():
    assert check(["ipc"], [metric("a", IPC), metric("b", IPC)]) == []


def test_kernels_that_lack_it_are_counted():
    (one,) = check(["ipc"], [metric("a", IPC), metric("b", IPC, value=None)])
    assert (one.without, one.kernels, one.reason) == (("b",), 2, "ncu printed no value")
    assert "ipc, of 1 of 2 kernels, such as b: " in unmeasured_metric_sentences([one])[0][0]


def test_the_chip_of_the_report_explains_a_metric_that_it_does_not_have():
    (one,) = check(["smsp__nosuch_thing.sum"], [metric("a", IPC)], kernels=("a",), chip=None)
    assert one.reason == "gh100 has no metric smsp__nosuch_thing.sum"


def test_a_range_has_no_metrics_of_instructions():
    name = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
    (one,) = check([name], [metric("a", IPC)], kernels=("a",), replay="range")
    assert one.reason == "replay: range has no metrics of instructions"


def test_a_base_name_stands_for_its_suffixes_and_a_portable_one_for_another_printed_name():
    printed = [metric("a", "dram__bytes.avg"), metric("a", "Achieved Occupancy", portable="achieved_occupancy")]
    assert check(["dram__bytes", "achieved_occupancy"], printed, kernels=("a",)) == []


def test_sets_sections_and_groups_that_a_chip_lacks_are_no_metrics_that_were_asked_for():
    assert check(["set:full", "section:Occupancy"], [], kernels=("a",)) == []
    assert (
        find_unmeasured_metrics(["ipc"], "ncu", None, "kernel", [], []) == []
    )  # nothing was profiled: an error of its own


def test_metrics_that_lack_the_same_kernels_are_one_sentence():
    asked = ["sm__throughput.avg.pct_of_peak_sustained_elapsed", "dram__bytes.sum", "ipc"]
    told = unmeasured_metric_sentences(check(asked, [metric("a", IPC), metric("b", IPC)]))
    assert len(told) == 1
    assert "sm__throughput.avg.pct_of_peak_sustained_elapsed, dram__bytes.sum, of all 2 kernels" in told[0][0]


def test_nvprof_is_asked_by_its_own_names():
    (one,) = check(["ipc", "achieved_occupancy"], [metric("a", "achieved_occupancy")], kernels=("a",), tool="nvprof")
    assert (one.name, one.reason) == ("ipc", "nvprof left it out and gave no reason")


def test_of_the_default_group_an_h100_leaves_nothing_out(tmp_path):
    tables = read(recordings.unpack("k01", tmp_path)["counters"]).tables
    measured, launched = (list(full_rows(name, tables[name])) for name in ("metrics", "launches"))
    assert find_unmeasured_metrics(["diagnosis"], "ncu", "gh100", "kernel", measured, launched) == []
