"""What a job needs becomes `#SBATCH` lines from which no value can break out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsw.errors import RefusedError, UsageError
from nsw.plan.model import Job, Resources, Run
from nsw.recipe.units import format_clock
from nsw.schedulers.slurm import Slurm, directive


def job(**needs):
    resources = Resources(**needs)
    run = Run("r", "c", {}, "baseline", "baseline", None, 1, ("true",), {}, resources)
    return Job("j1", resources, ((run,),))


def lines(**needs):
    return [line.removeprefix("#SBATCH ") for line in Slurm().directives(job(**needs), "/scratch/c")]


def test_what_is_asked_stands_there_and_nothing_else():
    assert lines(time_s=540) == ["--output=/scratch/c/jobs/%x.%j.log", "--time=00:10:00", "--nodes=1", "--ntasks=1"]


def test_everything_that_can_be_asked():
    found = lines(
        nodes=2,
        gpus=8,
        tasks=8,
        cpus_per_task=4,
        memory_bytes=32 << 30,
        queue="gpu",
        account="p1",
        qos="high",
        reservation="r1",
        constraint="a100&nvlink",
        exclusive=True,
        extra=("#SBATCH --mail-type=END", "--hint=nomultithread"),
    )
    assert found[2:] == [
        "--nodes=2",
        "--ntasks=8",
        "--ntasks-per-node=4",
        "--cpus-per-task=4",
        "--mem=32G",
        "--gpus-per-node=4",
        "--partition=gpu",
        "--account=p1",
        "--qos=high",
        "--exclusive",
        "--mail-type=END",
        "--hint=nomultithread",
        "--constraint=a100&nvlink",  # Slurm takes the last: behind the `extra` of a site, which has no key for it
        "--reservation=r1",
    ]


def test_the_recipes_own_gres_takes_the_place_of_the_gpus():
    found = lines(gpus=4, gres="gpu:a100:4,nvme:1")
    assert "--gres=gpu:a100:4,nvme:1" in found
    assert not any(line.startswith("--gpus") for line in found)


def test_gpus_that_do_not_divide_by_the_nodes_are_asked_as_a_whole():
    assert "--gpus=3" in lines(nodes=2, gpus=3)


@given(st.text(alphabet=st.characters(blacklist_categories=("Cc", "Cs")), min_size=1))
def test_a_value_stays_one_value_as_sbatch_reads_it(text):
    line = directive("comment", text)
    assert line.startswith("#SBATCH --comment=")
    assert as_sbatch_reads(line.removeprefix("#SBATCH ")) == f"--comment={text}"


def as_sbatch_reads(line):
    """The first word by the rules of sbatch's own parser (get_argument in its opt.c)."""
    word, quote, escaped = "", "", False
    for char in line:
        if escaped:
            word, escaped = word + char, False
        elif char == "\\":
            escaped = True
        elif quote and char == quote:
            quote = ""
        elif not quote and char in "\"'":
            quote = char
        elif not quote and (char.isspace() or char == "#"):
            break
        else:
            word += char
    assert not quote
    return word


@pytest.mark.parametrize("value", ["a\nb", "a\r", "a\0b", "\x1b[2J"])
def test_control_characters_are_refused(value):
    with pytest.raises(UsageError, match="control character"):
        directive("account", value)


def test_a_line_of_the_recipe_is_one_line():
    with pytest.raises(UsageError, match="line break"):
        lines(extra=("--mail-type=END\nrm -rf /",))


@pytest.mark.parametrize(("seconds", "text"), [(60, "00:01:00"), (3661, "01:01:01"), (172800, "48:00:00")])
def test_walltimes(seconds, text):
    assert format_clock(seconds) == text


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("--array=0-3", "--array"),
        ("#SBATCH --array 0-3", "--array"),
        ("#SBATCH -a0-3", "-a"),
        ("--mem=1G --clusters=other", "--clusters"),
        ("-M other", "-M"),
        ("--test-only", "--test-only"),
        ("-W", "-W"),
        ("-J mine", "-J"),
        ("--output=mine.log", "--output"),
        ("--comment='of mine'", "--comment"),
        ('--comment="of mine', "--comment"),
    ],
)
def test_a_line_that_would_take_from_nsw_what_it_does_itself_is_refused(line, option):
    with pytest.raises(RefusedError, match=f"resources.extra cannot hold {option}: ") as refused:
        lines(extra=(line,))
    assert refused.value.key == "extra"


@pytest.mark.parametrize(
    "line", ["--dependency=afterok:12", "#SBATCH hetjob", "--mail-user=me-M@x.org", "-p a", "--error=e.log", "#BB -a 1"]
)
def test_other_lines_stand_there_word_for_word(line):
    assert lines(extra=(line,))[-1] == line.removeprefix("#SBATCH ")
