"""Whether nodes that are away now are all that keeps a job from being accepted."""

from __future__ import annotations

import pytest

from nsw.errors import CommandResult
from nsw.schedulers import slurm_nodes
from nsw.schedulers.slurm import Slurm

SLURM = Slurm()
TEST = "allocation failure: Requested node configuration is not available"


def listing(*rows: str) -> CommandResult:
    text = "\n".join(row.replace("|", "\x1f") for row in rows)
    return CommandResult(argv=("sinfo",), returncode=0, stdout=text, stderr="")


def waits(options: str, *rows: str) -> list[str]:
    script = f"#!/bin/bash\n#SBATCH {options}\n"
    return SLURM.down_nodes(script, listing(*rows))


UP = "gpu*|n1|idle|gpu:v100:4|16|64000|volta"
DRAINED = "gpu*|n2|drained|gpu:v100:4(S:0-1)|16|64000|volta"
DOWN = "big|n3|down*|gpu:a100:8,nvme:2|64|512000|ampere,nvlink"


@pytest.mark.parametrize(
    "options",
    [
        "--gpus-per-node=4 --nodes=2",
        "--gres=gpu:v100:4 --nodes=2",
        "--gres=gpu:4 -N2",
        "--gpus=8 --nodes=2",
        "-N2 -C volta --mem=60G",
        "-N2 -C volta|ampere --ntasks=8 --ntasks-per-node=4 -c4",
        "-N2 --exclusive",
        "-w n2 --gpus-per-node=1",
        "-p gpu,big -N2 --gpus-per-node=4",
    ],
)
def test_a_job_that_fits_once_a_node_is_up_again_names_that_node(options):
    assert waits(options, UP, DRAINED, DOWN) == ["n2 drained"]


@pytest.mark.parametrize(
    "options",
    [
        "--gpus-per-node=5",
        "--gpus-per-node=8",
        "-N3",
        "-N2 --gres=gpu:a100:4",
        "-N2 --gres=fpga:1",
        "-N2 --mem=100G",
        "-N2 -c17",
        "-N2 -C ampere",
        "-N2 -C volta&nvlink",
        "-p big --gpus-per-node=9",
        "-p big -N2",
        "-p other",
        "-p gpu,big --nodes=3",
        "--gpus=9 --nodes=2",
    ],
)
def test_what_no_choice_of_nodes_could_ever_run_is_refused(options):
    assert waits(options, UP, DRAINED, DOWN) == []


def test_what_the_nodes_that_are_up_could_run_was_refused_for_another_reason():
    assert waits("-N1 --gpus-per-node=4", UP, DRAINED) == []


@pytest.mark.parametrize(
    "state", ["drained", "draining", "down", "down*", "idle*", "maint", "reserved", "fail", "inval"]
)
def test_a_node_that_is_away_is_waited_for_in_each_of_its_states(state):
    assert waits("-N1", f"gpu*|n1|{state}|(null)|16|64000|(null)") == [f"n1 {state.rstrip('*')}"]


@pytest.mark.parametrize("state", ["idle~", "idle#", "mixed", "allocated+", "completing", "planned"])
def test_a_node_that_is_busy_or_powered_down_is_as_good_as_one_that_is_up(state):
    assert waits("-N1", f"gpu*|n1|{state}|(null)|16|64000|(null)") == []


def test_all_nodes_of_a_partition_may_be_down():
    assert waits("-p big --gpus-per-node=8 --gres=nvme:2", UP, DOWN) == ["n3 down"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gpu:k80:2(S:0),gpu:v100:4", [("gpu", "k80", 2), ("gpu", "v100", 4)]),
        ("gpu:1g.5gb:7", [("gpu", "1g.5gb", 7)]),
        ("gpu", [("gpu", "", 1)]),
        ("gpu:a100", [("gpu", "a100", 1)]),
        ("bandwidth:4G", [("bandwidth", "", 4 << 30)]),
        ("(null)", []),
    ],
)
def test_generic_resources_are_read_with_kind_and_number(text, found):
    assert slurm_nodes.parse_gres_items(text) == found


@pytest.mark.parametrize("said", ["Invalid feature specification", "Node count specification invalid"])
def test_a_refusal_that_no_state_of_a_node_explains_is_one(said):
    refused = CommandResult(argv=("sbatch",), returncode=1, stdout="", stderr=f"allocation failure: {said}")
    assert SLURM.nodes_command(refused) is None
    refused = CommandResult(argv=("sbatch",), returncode=1, stdout="", stderr=TEST)
    assert SLURM.nodes_command(refused) == slurm_nodes.COMMAND
