"""What a job needs, as `#PBS` lines."""

from __future__ import annotations

import pytest

from nsw.errors import RefusedError, UsageError
from nsw.plan.model import Job, Resources, Run
from nsw.schedulers.pbs import Pbs, directive, placement_words, select


def job(**needs: object) -> Job:
    resources = Resources(**{"time_s": 540, **needs})
    run = Run("r", "c", {}, "baseline", "baseline", None, 1, ("true",), {}, resources)
    return Job("j1", resources, ((run,),))


def test_a_job_on_two_nodes_with_gpus():
    needs = {"nodes": 2, "gpus": 8, "tasks": 8, "cpus_per_task": 4, "memory_bytes": 32 << 30, "queue": "prod",
             "account": "My Project", "extra": ("#PBS -l filesystems=home:eagle", "-m abe", "# a note")}  # fmt: skip
    assert Pbs().directives(job(**needs), "/s") == [
        "#PBS -l select=2:ncpus=16:ngpus=4:mem=32gb:mpiprocs=4",
        "#PBS -l place=scatter",
        "#PBS -l walltime=00:10:00",
        "#PBS -q prod",
        '#PBS -A "My Project"',
        "#PBS -j oe",
        "#PBS -o /s/jobs/",
        "#PBS -l filesystems=home:eagle",
        "#PBS -m abe",
        "# a note",
    ]


def test_a_select_or_place_of_the_users_own_replaces_that_of_nsw():
    lines = Pbs().directives(job(gpus=4, nodes=2, extra=("#PBS -l select=2:system=polaris -l place=scatter",)), "/s")
    assert sum("select" in line for line in lines) == 1
    assert sum("place" in line for line in lines) == 1


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        ({}, None),
        ({"nodes": 2}, "scatter"),
        ({"exclusive": True}, "exclhost"),
        ({"nodes": 2, "exclusive": True}, "scatter:exclhost"),
    ],
)
def test_where_chunks_are_placed(needs, words):
    assert placement_words(Resources(**needs)) == words


def test_a_sites_own_words_for_gpus_take_the_place_of_ngpus():
    assert select(Resources(nodes=2, gpus=8, gres="ngpus=4:gputype=A100")) == "2:ncpus=1:ngpus=4:gputype=A100"
    with pytest.raises(RefusedError, match="no part of a chunk"):
        select(Resources(gpus=1, gres="gpu:a100:1"))


def test_gpus_that_cannot_be_shared_out_are_refused():
    with pytest.raises(RefusedError, match="cannot be divided"):
        select(Resources(nodes=2, gpus=3))


@pytest.mark.parametrize(
    "line",
    ["#PBS -N other", "-J 0-3", "#PBS -o elsewhere", "-v A=1", "#PBS -W depend=afterok:1", "-W block=true",
     "#PBS -l walltime=1:00", "#PBS -m abe -I", "-l select=1,walltime=5"],
)  # fmt: skip
def test_a_line_that_asks_for_what_nsw_sets_is_refused(line):
    with pytest.raises(RefusedError) as refused:
        Pbs().directives(job(extra=(line,)), "/s")
    assert refused.value.key == "extra"


def test_values_are_quoted_as_qsub_reads_them():
    assert directive("A", "it's") == '#PBS -A "it\'s"'
    assert directive("A", 'a "b"') == "#PBS -A 'a \"b\"'"
    with pytest.raises(UsageError):
        directive("A", """a'b"c""")
    with pytest.raises(UsageError):
        directive("A", "a\nb")


def test_a_scratch_with_a_colon_would_be_a_host():
    with pytest.raises(UsageError, match="colon"):
        Pbs().directives(job(), "host:/s")
