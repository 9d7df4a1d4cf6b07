"""A program that is not on PATH is warned of in the plan, where that is certain: on this machine, without set-up."""

import pytest


def test_a_program_that_is_not_on_path_is_warned_of_with_the_nearest_one(nsw, recipe):
    said = nsw("plan", recipe("{command: 'pyhton3 -c 1'}"), "-s", "here", exits=0)
    assert "pyhton3 is not on PATH here: the runs will not find it" in said.out
    assert "did you mean 'python3'?" in said.out


@pytest.mark.parametrize(
    "app",
    [
        "command: 'python3 -c 1'",
        "command: 'for i in 1 2; do true; done'",
        "command: 'cd /'",
        "command: './pyhton3'",
        "command: 'pyhton3 || true'",
        "command: 'X=1 pyhton3'",
        "command: pyhton3, setup: [source env.sh]",
        "command: pyhton3, build: {command: make}",
        "command: pyhton3, env: {PATH: /opt/bin}",
        "command: pyhton3, container: {runtime: apptainer, image: x.sif}",
    ],
)
def test_a_program_that_may_be_there_is_not_warned_of(nsw, recipe, app):
    assert "not on PATH" not in nsw("plan", recipe(f"{{{app}}}"), "-s", "here").out
