"""What a machine behind ssh answers becomes a site; a login shell is used only where the scheduler needs one."""

import pytest
import yaml

from nsw.errors import CommandResult, UnreachableError
from nsw.site.model import SitesFile
from nsw.site_check.starter import draft_site, known_site, shipped_site, survey_machine


class Machine:
    """Answers by what a command begins with; words that it does not know fail."""

    def __init__(self, **answers):
        self._answers = answers

    def run(self, argv, **_):
        shell = argv[1] if argv[0] == "bash" else argv[0]
        if argv[0] == "bash" and "qsub --version" in argv[-1]:
            shell = "qsub"
        elif argv[0] == "bash" and "sacctmgr" in argv[-1]:
            shell = "sacctmgr"
        elif argv[0] == "bash" and argv[-1].startswith("--format=%P"):
            shell = "sinfo"
        text = self._answers.get(shell.removeprefix("-").replace("-", "_"))
        return CommandResult(tuple(argv), 127 if text is None else 0, text or "", "" if text is not None else "no such")


SLURM = "banner of the site\nnsw-has sbatch /opt/slurm/bin/sbatch\nnsw-scratch /scratch/me\nnsw-module yes\n"


def site_of(machine, host=None):
    text, found, todo = draft_site("mine", survey_machine(machine, host))
    made = yaml.safe_load("nsw: 1\nsites:\n" + text)
    SitesFile.model_validate(made)
    return made["sites"]["mine"], found, todo


def test_commands_that_only_a_login_shell_has_make_the_transport_one():
    machine = Machine(c="nsw-tool nsys /opt/nvidia/nsight-systems/2024.2/bin/nsys\n", lc=SLURM,
                      sinfo="gpu|up|gpu:h100:8|2-00:00:00\n")  # fmt: skip
    site, _, todo = site_of(machine, "login.example.org")
    assert site["transport"] == {"kind": "openssh", "host": "login.example.org", "login_shell": True}
    assert (site["partition"], site["gpus"]) == ("gpu", {"chip": "gh100", "per_node": 8})
    assert site["login_shell"] is True, "module is there only in a login shell"
    assert site["scratch"] == "/scratch/me"
    assert any(line.startswith("account:") for line in todo)


def test_what_a_plain_shell_has_needs_no_login_shell():
    machine = Machine(c=SLURM, lc=SLURM, sinfo="a|up|(null)|infinite\nb*|up|gpu:2|infinite\n", sacctmgr="one\n")
    site, found, todo = site_of(machine, "h")
    assert site["transport"] == {"kind": "openssh", "host": "h"}
    assert "login_shell" not in site
    assert (site["partition"], site["account"], site["gpus"]["per_node"]) == ("b", "one", 2)
    assert "partition a: no GPUs" in found
    assert any("chip" in line for line in todo)


def test_a_recognised_machine_behind_ssh_is_reached_as_it_was_asked():
    names = "nsw-name login05\nnsw-name NERSC_HOST=perlmutter\nnsw-name LMOD_SYSTEM_NAME=\n"
    answers = survey_machine(Machine(c="", lc=SLURM + names, sinfo="gpu|up|gpu:4|1:00\n"), "nersc")
    assert known_site(answers) == "perlmutter"
    text, *_ = shipped_site("perlmutter", "mine", answers)
    made = yaml.safe_load("nsw: 1\nsites:\n" + text)
    SitesFile.model_validate(made)
    site = made["sites"]["mine"]
    assert site["transport"] == {"kind": "openssh", "host": "nersc", "login_shell": True}
    assert site["extra"] == ["#SBATCH --constraint=gpu"]


def test_a_name_of_the_site_stays_in_its_line():
    machine = Machine(c=SLURM, lc="", sinfo="yes|up|gpu:x\x85y: #z:2|1:00\n1e3|up|gpu:4|\n")
    site, *_ = site_of(machine)
    assert site["partition"] in {"yes", "1e3"}


def test_a_machine_that_does_not_answer_is_told_as_that():
    with pytest.raises(UnreachableError, match="no such"):
        survey_machine(Machine(), "h")
