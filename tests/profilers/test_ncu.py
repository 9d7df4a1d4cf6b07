"""The command lines of ncu: what is chosen, how it is escaped, what older versions get."""

import os
import re
import subprocess
from dataclasses import replace

import pytest

from nsw.profilers import kernel_filters, ncu
from nsw.profilers.model import Request
from nsw.recipe.passes import CountersPass, SecondStage
from tests.jobs import in_a_job
from tests.profilers import asked as recipe

PROGRAM = ("python", "train.py", "-b", "8")
METRICS = ("sm__warps_active.avg.pct_of_peak_sustained_active", "dram__bytes.sum")


def profile(path="/opt/ncu", program=PROGRAM, counting=None, **how):
    return ncu.profile(Request(path, program, counting=counting or recipe.counting(metrics=METRICS), **how))


def words(**how):
    return profile(counting=recipe.counting(**{"metrics": METRICS, **how})).command


def test_the_whole_command_line():
    assert words() == (
        "/opt/ncu", "--target-processes", "all", "--metrics", ",".join(METRICS), "--force-overwrite",
        "--export", "counters", *PROGRAM,
    )  # fmt: skip


def test_sets_sections_and_metrics_are_collected_together():
    found = words(sets=("full",), sections=("Occupancy", "SpeedOfLight"), metrics=("dram__bytes.sum",))
    assert " ".join(found).count("--set full --section Occupancy --section SpeedOfLight --metrics dram__bytes.sum") == 1


def test_replay_clocks_caches_and_processes_are_said_only_where_the_recipe_does():
    assert not {"--replay-mode", "--clock-control", "--cache-control", "--nvtx", "--kernel-id"} & set(words())
    found = words(replay="application", clocks="none", cache="none", processes="application")
    assert " ".join(found).startswith(
        "/opt/ncu --target-processes application-only --replay-mode application --clock-control none"
        " --cache-control none"
    )


def kernel_id(**how):
    found = words(**how)
    assert found.count("--kernel-id") == 1  # ncu refuses a second one
    value = found[found.index("--kernel-id") + 1]
    assert re.fullmatch(r"::regex:[^:]+:[^:]*", value)  # ncu splits at colons
    _, _, _, names, ordinals = value.split(":")
    return names, ordinals


NAMES = ["gemm_f32", "conv2d", "Kernel2", "ncclDevKernel_AllReduce", "a+b(int*)", "gemm_f32_nccl"]


def chosen(**how):
    names, _ = kernel_id(**how)
    return [name for name in NAMES if re.search(names, name)]


def test_kernels_are_chosen_by_names_and_by_expressions_less_those_left_out():
    assert chosen(names=("Kernel2", "conv2d")) == ["conv2d", "Kernel2"]
    assert chosen(names=("a+b(int*)",)) == ["a+b(int*)"]
    assert chosen(names=("gemm",)) == []
    assert chosen(regex="gemm|conv") == ["gemm_f32", "conv2d", "gemm_f32_nccl"]
    assert chosen(regex="gemm|conv", exclude=("nccl",)) == ["gemm_f32", "conv2d"]
    assert chosen(exclude=("nccl", "^a")) == ["gemm_f32", "conv2d", "Kernel2"]
    assert chosen(regex="^(?:gemm|conv)", exclude=("(?:nccl)",)) == ["gemm_f32", "conv2d"]


@pytest.mark.parametrize(
    ("skip", "count", "measured"), [(10, 3, [11, 12, 13]), (0, 2, [1, 2]), (37, None, list(range(38, 60)))]
)
def test_launches_are_counted_kernel_by_kernel(skip, count, measured):
    _, ordinals = kernel_id(skip=skip, count=count)
    assert [n for n in range(1, 60) if re.fullmatch(ordinals, str(n))] == measured
    names, _ = kernel_id(skip=skip, count=count)
    assert re.search(names, "anything")


def test_a_warm_up_counts_launches_of_any_kernel():
    found = words(regex="gemm", warmup=40)
    at = found.index("--kernel-name")
    assert found[at : at + 4] == ("--kernel-name", "regex:gemm", "--launch-skip-before-match", "40")
    assert words(warmup=40)[3:5] == ("--launch-skip-before-match", "40")


def test_a_range_and_its_instances():
    found = words(nvtx="train_step", instances=(7, 5))
    at = found.index("--nvtx")
    assert found[at : at + 5] == ("--nvtx", "--nvtx-include", "train_step/", "--range-filter", "::5|7")
    found = words(nvtx="a/b [c]", domain="my@domain", start_end=True)
    assert found[found.index("--nvtx-include") + 1] == r"my\@domain@a\/b \[c\]"
    assert "--range-filter" not in found


def test_what_a_timeline_chose_takes_the_place_of_the_recipes_choice():
    arguments = kernel_filters.ncu_launch_filter_options(("_Z1fPf", "_Z1gILi4EEvv"), (12, 3))
    assert arguments == (
        "--kernel-name-base", "mangled", "--kernel-id", "::regex:^(_Z1fPf|_Z1gILi4EEvv)$:^(3|12)$",
    )  # fmt: skip
    found = words(chosen="CHOSEN", names=("ignored",), skip=3)
    assert "ignored" not in " ".join(found)
    assert found.count("CHOSEN") == 1


def test_each_process_of_a_launcher_has_a_report_under_its_rank():
    done = profile(per_rank=True, rank_variable="SLURM_PROCID")
    assert "counters.rank%q{SLURM_PROCID}" in done.command
    assert done.reports == ("counters*.ncu-rep", "counters*.raw.csv", "counters*.details.csv", "counters*.session.csv")


def test_reduced_where_it_is_made_only_the_pages_are_brought_back():
    assert profile(export_here=True).reports == ("counters*.raw.csv", "counters*.details.csv", "counters*.session.csv")


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("/opt/nvidia/nsight-compute/2022.3.0/ncu", (2022, 3)),
        ("/usr/local/cuda-10.2/NsightCompute-2019.5/nv-nsight-cu-cli", (2019, 5)),
        ("nv-nsight-cu-cli", (2019, 5)),
        ("/opt/nvidia/hpc_sdk/Linux_x86_64/24.5/profilers/Nsight_Compute/ncu", None),
        ("ncu", None),
    ],
)
def test_the_path_of_an_installation_tells_its_version(path, version):
    assert ncu.version_numbers_in_path(path) == version


@pytest.mark.parametrize(
    ("path", "asked", "told"),
    [
        ("/x/2022.3.0/ncu", {"nvtx": "step", "instances": (5,)}, "within: instances needs ncu 2023.1"),
        ("/x/2022.3.0/ncu", {"nvtx": "step", "replay": "app-range"}, "replay: app-range needs ncu 2023.1"),
        ("/x/2019.4.0/ncu", {"sets": ("full",)}, "set: needs ncu 2019.5"),
        ("/x/2020.1.0/ncu", {"replay": "application"}, "replay: application needs ncu 2020.3"),
        ("ncu", {"events": ("warps_launched",)}, "ncu has no events; nvprof measures them"),
    ],
)
def test_what_a_version_cannot_do_is_said_before_the_job(path, asked, told):
    assert profile(path, counting=recipe.counting(metrics=METRICS, **asked)).impossible.startswith(told)


def test_versions_of_2019_get_their_own_words(tmp_path):
    fake = tmp_path / "nv-nsight-cu-cli"
    fake.write_text('#!/bin/sh\nfor w in "$@"; do echo "$w"; done\n')
    fake.chmod(0o755)
    counting = recipe.counting(metrics=METRICS, regex="gemm", warmup=5)
    done = profile(str(fake), counting=counting, per_rank=True, rank_variable="RANK")
    found = subprocess.run(done.command, capture_output=True, text=True, check=True, env={**os.environ, "RANK": "3"})
    said = found.stdout.splitlines()
    assert said[said.index("--kernel-regex") + 1] == "gemm"
    assert said[said.index("--export") + 1 :] == ["counters.rank3", *PROGRAM]
    assert "counters*.nsight-cuprof-report" in done.reports


@pytest.mark.parametrize(("folder", "word"), [("2020.3.1", "--kernel-regex-base"), ("2021.1.0", "--kernel-name-base")])
def test_what_a_timeline_chose_is_said_in_the_words_of_the_version(tmp_path, folder, word):
    fake = tmp_path / folder / "ncu"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\nfor w in "$@"; do echo "$w"; done\n')
    fake.chmod(0o755)
    command = profile(str(fake), counting=recipe.counting(metrics=METRICS, chosen="CHOSEN")).command
    chosen = ("--kernel-name-base", "mangled", "--kernel-id", "::regex:^(_Z1 1)$:^(1)$")
    given = [part for one in command for part in (chosen if one == "CHOSEN" else (one,))]
    said = subprocess.run(given, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[said.index("mangled") - 1] == word
    assert said[-len(PROGRAM) :] == [*PROGRAM]
    assert chosen[-1] in said


FAKE = """#!/bin/bash
# $2: the report, $4: the page; old ones know no --rename-kernels, the first ones no --print-units either
case $NSW_OLD,"$*" in yes,*--rename-kernels*|first,*--print-units*) echo "unrecognised option" >&2; exit 1;; esac
case $2 in *bad*) exit 3;; esac
echo "$4 of $2"
"""


@pytest.mark.parametrize("old", ["first", "yes", "no"])
def test_every_report_is_printed_page_by_page_and_a_bad_one_leaves_no_half_page(tmp_path, old):
    fake = tmp_path / "my ncu"
    fake.write_text(FAKE)
    fake.chmod(0o755)
    for name in ("counters.rank0.nsight-cuprof-report", "counters.rank1.ncu-rep", "other.ncu-rep"):
        (tmp_path / name).touch()
    (after,) = profile(str(fake)).after
    env = {**os.environ, "NSW_OLD": old}
    assert in_a_job(after, cwd=tmp_path, env=env).returncode == 0
    pages = sorted(p.name for p in tmp_path.glob("*.csv"))
    assert pages == [f"counters.rank{r}.{page}.csv" for r in (0, 1) for page in ("details", "raw", "session")]
    assert (tmp_path / "counters.rank1.raw.csv").read_text() == "raw of counters.rank1.ncu-rep\n"
    (tmp_path / "counters.bad.ncu-rep").touch()
    assert in_a_job(after, cwd=tmp_path, env=env).returncode == 3
    assert not list(tmp_path.glob("counters.bad.*.csv"))


def test_no_report_is_no_fault_of_the_export(tmp_path):
    (after,) = profile("/bin/false").after
    assert in_a_job(after, cwd=tmp_path).returncode == 0


def environment(**more):
    """What ncu finds, behind the function of the job that looks after its lock."""
    assert profile().before == ("nsw_ncu_lock",)
    return in_a_job(["env"], functions="nsw_ncu_lock", env={**os.environ, **more}).stdout.splitlines()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to everybody's lock")
def test_another_users_lock_is_gone_round(tmp_path):
    (tmp_path / "nsight-compute-lock").touch(mode=0o400)
    assert f"TMPDIR=/tmp/nsw-ncu-{os.getuid()}" in environment(TMPDIR=str(tmp_path))


def test_the_program_keeps_its_folder_for_temporary_files(tmp_path):
    assert f"TMPDIR={tmp_path}" in environment(TMPDIR=str(tmp_path))


SOURCE = """#!/bin/bash
# without line information there is no page of both
case $4,$* in
  source,*sass,cuda*) [ -n "$NSW_LINES" ] || exit 1; printf '"File Path","a.cu"\\n"Line No","Source","Address"\\n' ;;
  source,*) printf '"Kernel Name","k"\\n"Address","Source"\\n' ;;
  *) echo "$4" ;;
esac
"""


@pytest.mark.parametrize(("lines", "first"), [("1", '"File Path","a.cu"'), ("", '"Kernel Name","k"')])
def test_the_page_of_the_source_has_lines_where_there_are_any_and_instructions_else(tmp_path, lines, first):
    fake = tmp_path / "ncu"
    fake.write_text(SOURCE)
    fake.chmod(0o755)
    (tmp_path / "counters.ncu-rep").touch()
    second = recipe.counting(chosen="CHOSEN")
    second = replace(second, counters_pass=SecondStage.after(CountersPass(), "counters-2"))
    done = profile(str(fake), counting=second)
    assert done.reports[-1] == "counters*.source.csv"
    assert in_a_job(done.after[0], cwd=tmp_path, env={**os.environ, "NSW_LINES": lines}).returncode == 0
    assert (tmp_path / "counters.source.csv").read_text().splitlines()[0] == first
    assert (tmp_path / "counters.session.csv").read_text() == "session\n"
