"""`nsw init`: what it writes is accepted, nothing is written over, and what a machine answers becomes a site."""

import os
import sys
from pathlib import Path

import pytest

from nsw.recipe.load import load_recipe
from nsw.resources import recipes_folder
from nsw.site.load import read_sites

SINFO = """\
cpu*|up|(null)|infinite
gpu|up|gpu:a100:4(S:0-1)|1-00:00:00
gpu|up|gpu:a100:2|1-00:00:00
old|down|gpu:v100:4|30:00
"""
QSTAT_PBS = """\
Queue: workq
    queue_type = Execution
    resources_max.walltime = 02:30:00
    enabled = True
    started = True

Queue: shut
    queue_type = Execution
    enabled = False
    started = True

     resources_available.ngpus = 4
"""
QSTAT_COBALT = """\
Name     Users  Groups  MinTime   MaxTime   MaxRunning  MaxQueued  MaxUserNodes  MaxNodeHours  TotalNodes  State
====================================================================================================================
debug    None   None    00:10:00  00:20:00  1           2          4             None          None        running
default  None   None    None      None      None        None       None          None          None        stopped
"""
COBALT = 'version: "qsub.py " + $Revision: 559 $ + , Cobalt  + $Version$'


@pytest.fixture
def machine(home, tmp_path, monkeypatch):
    """`machine(sinfo="...")`: this machine has these commands, each printing a text, and no others of their kind."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "id", "grep", "sort", "cat", "env", "sh"):
        where = next(Path(p) / name for p in os.environ["PATH"].split(":") if (Path(p) / name).exists())
        (folder / name).symlink_to(where)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("HOME", str(home))  # whose .profile would set PATH anew
    (home / ".bash_profile").write_text(f"PATH={folder}\n")
    for name in ("SCRATCH", "WORK", "PSCRATCH", "NSW_SITE", "NERSC_HOST", "LMOD_SYSTEM_NAME"):
        monkeypatch.delenv(name, raising=False)

    def make(**commands):
        for name, text in commands.items():
            (folder / name).write_text(f"#!/bin/bash\ncat <<'TEXT'\n{text}\nTEXT\n")
            (folder / name).chmod(0o755)

    return make


def test_a_recipe_for_a_command_line_is_planned_and_run(nsw, home):
    (home / "prog.py").write_text("print('hello')\n")
    said = nsw("init", "--", "python", "prog.py", "--batch", "8", exits=0)
    assert "brings prog.py" in said.out
    assert "files: [prog.py]" in (home / "recipe.yaml").read_text()
    assert nsw("plan", "recipe.yaml", "-s", "local").code == 0
    assert nsw("init", "--", "true").code == 2
    assert "prog.py" in (home / "recipe.yaml").read_text()
    assert nsw("init", "--force", "--", "true").code == 0
    assert "prog.py" not in (home / "recipe.yaml").read_text()


def test_a_program_and_a_launcher_that_are_not_there_are_warned_of(nsw, home, machine):
    machine()
    said = nsw("init", "--", "mpirun", "-np", "4", "./a.out", exits=0)
    assert "launcher: mpirun, which nsw starts" in said.out
    assert "warning: a.out is not in app.files: the runs will not find it" in said.err
    assert "warning: mpirun is not on PATH here: the runs will not find it" in said.err
    machine(mpirun="")
    (home / "a.out").write_text("")
    said = nsw("init", "--force", "--", "mpirun", "-np", "4", "./a.out")
    assert "brings a.out" in said.out
    assert "warning" not in said.err
    said = nsw("init", "--force", "--", "no-such-program-here")
    assert "warning: no-such-program-here is not on PATH here" in said.err


@pytest.mark.parametrize("path", sorted(recipes_folder().glob("*.yaml")), ids=lambda path: path.stem)
def test_a_shipped_recipe_is_copied_with_its_files(nsw, home, path):
    assert nsw("init", "--from", path.stem, "-o", "new/mine.yaml").code == 0
    copied = [file for file in (home / "new").rglob("*") if file.is_file()]
    assert home / "new/mine.yaml" in copied
    assert len(copied) > 1
    said = nsw("plan", "new/mine.yaml", "-s", "batch")
    assert "there is no file" not in said.err
    assert "nsw ships" not in said.err
    assert nsw("init", "--from", path.stem, "-o", "new/mine.yaml").code == 2


def test_a_profiler_before_the_command_becomes_a_pass(nsw, home):
    (home / "x.py").write_text("")
    said = nsw("init", "--", "nsys", "profile", "-o", "out", "--trace=cuda,nvtx", "python", "x.py", "--batch", "4")
    assert said.code == 0, said.err
    assert "pass: nsys (timeline), which nsw starts" in said.out
    loaded = load_recipe(home / "recipe.yaml").recipe
    assert loaded.app.command == "python x.py --batch 4"
    assert loaded.app.files == ["x.py"]
    assert [type(each).__name__ for each in loaded.passes] == ["BaselinePass", "TimelinePass"]
    assert nsw("init", "--force", "--", "ncu", "--set", "full", "mpirun", "-np", "2", "python", "x.py").code == 0
    loaded = load_recipe(home / "recipe.yaml").recipe
    assert (loaded.app.command, loaded.app.launcher.kind) == ("python x.py", "mpirun")
    assert [type(each).__name__ for each in loaded.passes] == ["BaselinePass", "CountersPass"]


def test_a_shipped_site_is_not_written_for_another_machine_and_a_plan_offers_its_file(nsw, home, machine, recipe):
    machine()
    said = nsw("init", "--site", "polaris", "-o", "made.yaml", exits=2)
    assert "this machine is not polaris: it has no batch system, and polaris has pbs; nothing was written" in said.err
    assert "`nsw init --site polaris --host HOST`" in said.err
    assert not (home / "made.yaml").exists()
    shipped = recipes_folder() / "sites" / "polaris.yaml"
    assert f"nsw ships it: `--sites {shipped}`" in nsw("plan", recipe("{command: 'true'}"), "-s", "polaris").err


def test_a_recipe_copied_alone_finds_the_shipped_program_and_says_so(nsw, home):
    (home / "mine.yaml").write_text((recipes_folder() / "cpu_quickstart.yaml").read_text())
    said = nsw("plan", "mine.yaml", "-s", "here", "--json", exits=0)
    assert "apps/quickstart.py is not beside the recipe: the one that nsw ships is used" in said.out
    (home / "mine.yaml").write_text((home / "mine.yaml").read_text().replace("apps/quickstart.py", "apps/other.py"))
    assert "there is no file 'apps/other.py'" in nsw("plan", "mine.yaml", "-s", "here").err


def test_init_wants_one_thing(nsw):
    for words in ((), ("--from", "x", "--site", "y"), ("--host", "h", "--", "true")):
        assert nsw("init", *words).code == 2
    assert "did you mean 'hot_kernels'" in nsw("init", "--from", "hot_kernel").err


def test_a_site_of_slurm_takes_the_partition_with_gpus(nsw, home, machine):
    machine(sbatch="", sinfo=SINFO, sacctmgr="proj-a\nproj-b")
    said = nsw("init", "--site", "mine", "-o", "made.yaml", exits=0)
    text = (home / "made.yaml").read_text()
    for line in (
        "scheduler: slurm",
        "partition: gpu # there are also cpu",
        "gpus: { chip: ga100, per_node: 4 } # a100",
        "limits: { max_walltime: 1d } # of gpu",
        "account: proj-a # or proj-b",
    ):
        assert line in text
    assert "fill in  account: one of proj-a, proj-b" in said.out
    assert "found    partition cpu: no GPUs" in said.out
    assert "old" not in said.out
    assert nsw("sites", "--sites", "made.yaml").code == 0


def test_a_partition_with_several_kinds_of_gpus_is_not_said_to_have_one(nsw, home, machine):
    machine(sbatch="", sinfo="gpu*|up|gpu:a100:8|1-00:00:00\ngpu*|up|gpu:v100:4|1-00:00:00", sacctmgr="one")
    said = nsw("init", "--site", "mine", "-o", "made.yaml")
    assert "partition gpu: 8 GPUs a node (a100, others v100), at most 1d" in said.out
    assert "fill in  gpus: gpu has nodes with a100, v100; say which are yours" in said.out
    assert "# a100; gpu also has v100: ask for yours with gres or constraint" in (home / "made.yaml").read_text()


@pytest.mark.parametrize(
    ("qsub", "qstat", "lines"),
    [
        ("pbs_version = 23.06.06", QSTAT_PBS, ["scheduler: pbs", "queue: workq", "per_node: 4", "max_walltime: 2h30m"]),
        (COBALT, QSTAT_COBALT, ["scheduler: cobalt", "queue: debug", "max_walltime: 20m", "#- gpus: "]),
    ],
)
def test_whose_qsub_it_is_decides_on_the_scheduler(nsw, home, machine, qsub, qstat, lines):
    machine(qsub=qsub, qstat=qstat)
    said = nsw("init", "--site", "mine", "-o", "made.yaml", exits=0)
    text = (home / "made.yaml").read_text()
    assert [line for line in lines if line not in text] == []
    assert "fill in  account" in said.out


def test_a_client_of_slurm_that_reaches_no_controller_makes_no_slurm_site(nsw, home, machine):
    machine(sbatch="", sinfo="")
    (home.parent / "bin" / "sinfo").write_text(
        "#!/bin/bash\necho 'sinfo: fatal: no configuration source' >&2\nexit 1\n"
    )
    said = nsw("init", "--site", "mine", "-o", "made.yaml", exits=0)
    assert "scheduler: local" in (home / "made.yaml").read_text()
    told = " ".join(said.out.split())
    assert "Slurm's sbatch is here, but `sinfo` reaches no server: sinfo: fatal: no configuration source" in told
    machine(qsub="pbs_version = 23.06.06", qstat=QSTAT_PBS)
    assert nsw("init", "--site", "mine", "-o", "other.yaml").code == 0
    assert "scheduler: pbs" in (home / "other.yaml").read_text()


def test_the_real_client_of_slurm_without_a_controller_makes_no_slurm_site(nsw, home, machine, monkeypatch):
    real = [Path("/usr/bin/sbatch"), Path("/usr/bin/sinfo")]
    if not all(one.exists() for one in real):
        pytest.skip("no client of Slurm is installed")
    machine()
    for one in real:
        (home.parent / "bin" / one.name).symlink_to(one)
    (home / "slurm.conf").write_text(
        "ClusterName=none\nSlurmctldHost=nowhere(127.0.0.1)\nSlurmctldPort=1\nMessageTimeout=5\n"
    )
    monkeypatch.setenv("SLURM_CONF", str(home / "slurm.conf"))
    said = nsw("init", "--site", "mine", "-o", "made.yaml", exits=0)
    assert "scheduler: local" in (home / "made.yaml").read_text()
    assert "`sinfo` reaches no server" in " ".join(said.out.split())


MACHINES = {
    "polaris": ("polaris-login-04.hsn.cm.polaris.alcf.anl.gov", {}, "pbs"),
    "aurora": ("aurora-uan-0009.hostmgmt1000.cm.aurora.alcf.anl.gov", {}, "pbs"),
    "perlmutter": ("login05", {"NERSC_HOST": "perlmutter"}, "slurm"),
    "frontier": ("login05.frontier.olcf.ornl.gov", {"LMOD_SYSTEM_NAME": "frontier"}, "slurm"),
    "cooley": ("cooleylogin1.cooley.pub.alcf.anl.gov", {}, "cobalt"),
    "theta": ("thetalogin4", {}, "cobalt"),
}
COMMANDS = {
    "pbs": {"qsub": "pbs_version = 23.06.06", "qstat": QSTAT_PBS},
    "slurm": {"sbatch": "", "sinfo": SINFO, "sacctmgr": ""},
    "cobalt": {"qsub": COBALT, "qstat": QSTAT_COBALT},
}


@pytest.mark.parametrize("known", MACHINES)
def test_a_machine_that_nsw_ships_a_site_for_is_recognised(nsw, home, machine, monkeypatch, known):
    host, variables, scheduler = MACHINES[known]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    machine(hostname=host, **COMMANDS[scheduler])
    said = nsw("init", "--site", "mine", "-o", "made.yaml", exits=0)
    assert f"found    the machine is {known}: the site is the one that nsw ships for it" in said.out
    assert "fill in  account: the project that pays, in place of " in said.out
    (shipped,) = (
        one.site for one in read_sites(recipes_folder() / "sites" / f"{known}.yaml") if one.site.name == known
    )
    (made,) = (one.site for one in read_sites(home / "made.yaml"))
    assert made.model_copy(update={"name": known}) == shipped


def test_a_recognised_machine_gets_the_account_that_slurm_names(nsw, home, machine, monkeypatch):
    monkeypatch.setenv("NERSC_HOST", "perlmutter")
    machine(sbatch="", sinfo=SINFO, sacctmgr="m1234_g")
    said = nsw("init", "--site", "mine", "-o", "made.yaml")
    assert "account: m1234_g #" in (home / "made.yaml").read_text()
    assert "fill in  account" not in said.out


def test_a_machine_of_a_known_name_with_another_batch_system_is_asked_as_any_other(nsw, home, machine):
    machine(hostname="polaris-login-01", sbatch="", sinfo=SINFO)
    assert nsw("init", "--site", "mine", "-o", "made.yaml").code == 0
    assert "scheduler: slurm" in (home / "made.yaml").read_text()
    assert "pals" not in (home / "made.yaml").read_text()


def test_torque_is_told_apart_and_refused(nsw, home, machine):
    machine(qsub="Version: 6.1.2\nCommit: 661e092552de43a785c15d39a3634a541d86898e")
    said = nsw("init", "--site", "mine", "-o", "made.yaml", exits=2)
    assert "Torque's" in said.err
    assert not (home / "made.yaml").exists()


def test_a_machine_with_gpus_and_no_batch_system_is_a_site_too(nsw, home, machine):
    uuid = "GPU-12345678-1234-1234-1234-123456789abc"
    machine(**{"nvidia-smi": "\n".join(f"GPU {n}: NVIDIA A100-SXM4-80GB (UUID: {uuid})" for n in range(2))})
    assert nsw("init", "--site", "mine", "-o", "made.yaml").code == 0
    text = (home / "made.yaml").read_text()
    assert "scheduler: local" in text
    assert "gpus: { chip: ga100, per_node: 2 }" in text


def test_a_site_is_put_at_the_end_of_ones_own_file_and_never_over_another(nsw, home, machine, tmp_path):
    machine(sbatch="", sinfo=SINFO)
    own = tmp_path / "config/nsw/sites.yaml"
    assert nsw("init", "--site", "one").code == 0
    before = own.read_text()
    assert nsw("init", "--site", "two").code == 0
    assert own.read_text().startswith(before)
    assert nsw("init", "--site", "two").code == 2
    assert nsw("init", "--site", "two", "--force").code == 2
    listed = nsw("sites").out
    assert "one" in listed
    assert "two" in listed
    own.write_text("nsw: 1\nsites: {three: {scheduler: local}}\n")
    said = nsw("init", "--site", "four", exits=2)
    assert "scheduler: slurm" in said.out
    assert own.read_text() == "nsw: 1\nsites: {three: {scheduler: local}}\n"
    assert [p.name for p in own.parent.iterdir()] == ["sites.yaml"]


def test_output_behind_the_dashes_belongs_to_the_command_and_that_is_said(nsw, home):
    said = nsw("init", "--", "python", "train.py", "-o", "out.csv")
    assert (said.code, (home / "recipe.yaml").exists(), (home / "out.csv").exists()) == (0, True, False)
    assert "python train.py -o out.csv" in (home / "recipe.yaml").read_text()
    assert "-o follows --, so it is an option of the command" in said.out
    assert "`nsw init -o FILE -- COMMAND`" in said.out.replace(sys.executable, "nsw").replace("python -m nsw", "nsw")
    said = nsw("init", "-o", "other.yaml", "--", "python", "train.py")
    assert (said.code, "follows --" in said.out) == (0, False)
    assert (home / "other.yaml").exists()


@pytest.mark.parametrize("words", [["--token", "abc123"], ["--api-key=abc123"], ["postgres://me:pass@host/db"]])
def test_a_recipe_with_a_secret_of_the_command_line_is_its_owners_alone(nsw, home, words):
    said = nsw("init", "-o", "r.yaml", "--", "python", "train.py", *words, exits=0)
    assert Path("r.yaml").stat().st_mode & 0o777 == 0o600
    assert "looks like a secret, and only you can read it" in said.err + said.out
    Path("open.yaml").write_text("")
    Path("open.yaml").chmod(0o644)
    nsw("init", "--force", "-o", "open.yaml", "--", "python", "train.py", *words)
    assert Path("open.yaml").stat().st_mode & 0o777 == 0o600
    nsw("init", "-o", "plain.yaml", "--", "python", "train.py", "--max-tokens", "7")
    assert Path("plain.yaml").stat().st_mode & 0o044
