"""The shipped sites on one and two nodes, with a rank a GPU, against what each centre's documentation writes for that."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nsw.resources import templates_folder
from nsw.site.load import read_sites

ROOT = Path(__file__).parents[2]
SITES = ROOT / "recipes" / "sites"


@dataclass(frozen=True)
class Documented:
    """What a page writes: `{nodes}`, `{ranks}` and `{each}` (ranks a node) stand where it has numbers or variables.

    `instead`: words of the page that nsw does not write -> the words of its script that do the same.
    `gpus`: what each local rank of a node sees, as the page's script or output says.
    """

    launcher: str
    each: int
    cpus: int | None
    head: str
    line: str
    instead: dict[str, str] = field(default_factory=dict)
    gpus: tuple[str, ...] = ()


def _tiles(count: int) -> tuple[str, ...]:
    return tuple(str(number) for number in range(count))


PAGES = {
    # docs.alcf.anl.gov/polaris/running-jobs/using-gpus: submit.sh, set_affinity_gpu_polaris.sh
    "polaris": Documented(
        "mpiexec", 4, 8,
        "#PBS -l select={nodes}:system=polaris\n#PBS -q debug\n#PBS -A MyProject\n#PBS -l filesystems=home:eagle\n",
        "mpiexec -n {ranks} --ppn {each} --depth=8 --cpu-bind depth ./set_affinity_gpu_polaris.sh ./hello",
        {"./set_affinity_gpu_polaris.sh": " CUDA_VISIBLE_DEVICES 3,2,1,0"},
        ("3", "2", "1", "0"),  # gpu=$((${num_gpus} - 1 - ${PMI_LOCAL_RANK} % ${num_gpus}))
    ),
    # docs.alcf.anl.gov/aurora/running-jobs-aurora: "Running MPI+OpenMP+SYCL Applications"; its Example 2 has a rank a GPU
    "aurora": Documented(
        "mpiexec", 6, 16,
        "#PBS -l select={nodes}\n#PBS -q debug\n#PBS -A MyProject\n#PBS -l filesystems=home:flare\n",
        "mpiexec -n {ranks} -ppn {each} --depth=16 --cpu-bind depth gpu_dev_compact.sh ./hello",
        {"gpu_dev_compact.sh": " ZE_AFFINITY_MASK"},
        _tiles(6),
    ),
    # the same page: "Binding MPI ranks to GPUs using gpu_tile_compact.sh"; with ZE_FLAT_DEVICE_HIERARCHY=FLAT it binds
    # by `gpu_id=$((PMIX_RANK % ${num_gpus} )); export ZE_AFFINITY_MASK=$gpu_id` of 12
    "aurora-tiles": Documented(
        "mpiexec", 12, 8,
        "#PBS -l select={nodes}\n#PBS -q debug\n#PBS -A MyProject\n#PBS -l filesystems=home:flare\n",
        "mpiexec -n {ranks} --ppn {each} --depth=8 --cpu-bind=depth gpu_tile_compact.sh ./hello",
        {"gpu_tile_compact.sh": " ZE_AFFINITY_MASK"},
        _tiles(12),
    ),
    # docs.nersc.gov/systems/perlmutter/running-jobs: "4 nodes, 16 tasks, 16 GPUs, 1 GPU visible to each task"
    "perlmutter": Documented(
        "srun", 4, 32,
        "#SBATCH -A MyProject\n#SBATCH -C gpu\n#SBATCH -q regular\n#SBATCH -n {ranks}\n#SBATCH --ntasks-per-node={each}\n"
        "#SBATCH -c 32\n#SBATCH --gpus-per-task=1\n#SBATCH --gpu-bind=map_gpu:0,1,2,3\n",
        'SLURM_CPU_BIND="cores" srun ./hello',
        {
            "--gpus-per-task=1": "#SBATCH --gpus-per-node=4",
            "--gpu-bind=map_gpu:0,1,2,3": " CUDA_VISIBLE_DEVICES",
            "SLURM_CPU_BIND=cores": "--cpu-bind=cores",
        },
        _tiles(4),
    ),
    # docs.olcf.ornl.gov/systems/frontier_user_guide.html: "Batch Scripts"; "GPU Mapping", examples 1 and 3, whose output
    # has GPU_ID 4 for rank 0, 5 for rank 1, ...
    "frontier": Documented(
        "srun", 8, 7,
        "#SBATCH -A myproject\n#SBATCH -p batch\n#SBATCH -N {nodes}\n",
        "srun -N{nodes} -n{ranks} -c7 --gpus-per-task=1 --gpu-bind=closest ./hello",
        {"--gpus-per-task=1": "--gpus-per-node=8", "--gpu-bind=closest": " ROCR_VISIBLE_DEVICES 4,5,2,3,6,7,0,1"},
        ("4", "5", "2", "3", "6", "7", "0", "1"),
    ),
    # slurm.schedmd.com/sbatch.html and srun.html
    "plain-slurm": Documented(
        "srun", 4, 16,
        "#SBATCH --account=MyProject\n#SBATCH --partition=gpu\n#SBATCH --nodes={nodes}\n#SBATCH --ntasks-per-node={each}\n"
        "#SBATCH --cpus-per-task=16\n#SBATCH --gpus-per-node=4\n",
        "srun --nodes={nodes} --ntasks={ranks} --ntasks-per-node={each} --cpus-per-task=16 --gpus-per-node=4 ./hello",
        {},
        _tiles(4),
    ),
    # ALCF, "Queueing and Job Submission on Cooley", as it was: test.sh and its qsub
    "cooley": Documented(
        "mpirun", 2, None,
        "#COBALT -n {nodes}\n#COBALT -A training\n#COBALT --attrs nox11:filesystems=home,theta-fs0\n",
        "mpirun -f $COBALT_NODEFILE -n {ranks} ./hello",
        {},
        _tiles(2),
    ),
    # ALCF, "Running Jobs on XC40", as it was; without GPUs
    "theta": Documented(
        "aprun", 64, 1,
        "#COBALT -n {nodes}\n#COBALT --attrs mcdram=flat:numa=quad\n#COBALT -A MyProject\n",
        "aprun -n {ranks} -N {each} -cc depth -d 1 ./hello",
    ),
}  # fmt: skip
FILES = {"aurora-tiles": "aurora"}
SHORT = {
    "#SBATCH": {"-A": "--account", "-C": "--constraint", "-q": "--qos", "-n": "--ntasks", "-N": "--nodes",
                "-c": "--cpus-per-task", "-p": "--partition"},
    "srun": {"-n": "--ntasks", "-N": "--nodes", "-c": "--cpus-per-task"},
    "mpiexec": {"-ppn": "--ppn"},
    "mpirun": {"-n": "-np"},
}  # fmt: skip
# how each launcher tells a rank who it is
RANK = {
    "mpiexec": ("PALS_RANKID", "PALS_LOCAL_RANKID"),
    "srun": ("SLURM_PROCID", "SLURM_LOCALID"),
    "mpirun": ("PMI_RANK", "MPI_LOCALRANKID"),
}


def rendered(folder: Path, name: str, page: Documented, nodes: int) -> list[str]:
    """The job script's lines."""
    gpus = page.each * nodes if page.gpus else 0
    cpus = f"cpus_per_task: {page.cpus}, " if page.cpus else ""
    (folder / "r.yaml").write_text(
        f"nsw: 1\nname: scaling\napp: {{command: ./hello, launcher: {{kind: {page.launcher}, processes: {page.each * nodes}}}}}\n"
        f"passes: [baseline: {{}}]\nresources: {{nodes: {nodes}, gpus: {gpus}, {cpus}time: 10m}}\n"
    )
    return script(folder / "r.yaml", name)


def script(recipe: Path, name: str) -> list[str]:
    file = SITES / f"{FILES.get(name, name)}.yaml"
    words = [sys.executable, "-m", "nsw", "render", recipe, "--site", name, "--sites", file]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def options(command: str, words: list[str]) -> set[str]:
    """Options as `--name=value`, by their long names; other words as they are."""
    found, names = set(), SHORT.get(command, {})
    words = [part for word in words for part in re.split(r"(?<=^-[nNc])(?=\d)", word)]  # -n8
    while words:
        name, equals, value = words.pop(0).partition("=")
        if name.startswith("-") and not equals and words and not words[0].startswith("-"):
            equals, value = "=", words.pop(0)
        found.add(f"{names.get(name, name)}{equals}{value}")
    return found


def head(lines: list[str]) -> set[str]:
    """Directives; the parts of a PBS chunk, and the attributes of Cobalt, one by one."""
    found = set()
    for line in lines:
        if not line.startswith(("#SBATCH ", "#PBS ", "#COBALT ")):
            continue
        start, *words = shlex.split(line)
        for option in options(start, words):
            name, _, value = option.partition("=")
            if name == "-l" and value.startswith("select="):
                found |= {f"select={value.removeprefix('select=').partition(':')[0]}", *value.split(":")[1:]}
            elif name == "--attrs":
                found |= {f"--attrs={one}" for one in value.split(":")}
            else:
                found.add(option)
    return found


def test_each_site_that_ships_is_here_or_needs_no_page():
    named = {one.site.name for file in SITES.glob("*.yaml") for one in read_sites(file)}
    assert {name for name in named - set(PAGES) if not name.endswith("-from-afar")} == {"workstation"}


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("name", PAGES)
def test_directives_and_launcher_are_those_of_the_centres_page(tmp_path, name, nodes):
    page = PAGES[name]
    lines = rendered(tmp_path, name, page, nodes)
    numbers = {"nodes": nodes, "ranks": page.each * nodes, "each": page.each}
    run = next(line for line in lines if " nsw_run " in line)
    words = shlex.split(run)[3:]
    made = options(page.launcher, words[1 : words.index("bash")])
    typed = shlex.split(page.line.format(**numbers))
    wanted = options(page.launcher, [word for word in typed if word not in {page.launcher, "./hello"}])
    text = "\n".join(lines[: lines.index(run) + 1])
    if nodes == 1:
        wanted = {word for word in wanted if "NODEFILE" not in word}  # mpirun stays on its node
    assert words[0] == page.launcher
    missing = (wanted - made) | (head(page.head.format(**numbers).splitlines()) - head(lines))
    assert {page.instead.get(one, f"nothing for {one}") in text for one in missing} <= {True}, (missing, run)
    assert [word for word in page.instead if page.instead[word] not in text] == []


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if page.gpus])
def test_each_rank_sees_the_gpu_that_the_page_gives_it(tmp_path, name):
    page = PAGES[name]
    (line,) = (line for line in rendered(tmp_path, name, page, 2) if line.lstrip().startswith("nsw_layout case"))
    _, _, kind, ranks, gpus, variable, *order = shlex.split(line)
    machinery = templates_folder() / "job" / "machinery.sh"
    layout = {"NSW_LAUNCHER": kind, "NSW_LAYOUT": ranks, "NSW_NODE_GPUS": gpus, "NSW_VISIBLE": variable,
              "NSW_ORDER": "".join(order), "NSW_MASTER_ADDR": "nid1", "NSW_MASTER_PORT": "29000"}  # fmt: skip
    seen = []
    for rank in range(page.each, 2 * page.each):  # of the second node
        whose = dict(zip(RANK[page.launcher], (str(rank), str(rank - page.each)), strict=True))
        given = {variable: ",".join(_tiles(int(gpus)))} if page.launcher == "srun" else {}  # Slurm's own
        done = subprocess.run(
            ["bash", machinery, "rank", "bash", "-c", f'echo "${variable} $RANK $LOCAL_RANK $WORLD_SIZE"'],
            capture_output=True, text=True, check=True, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"} | layout | whose | given,
        )  # fmt: skip
        gpu, *torch = done.stdout.split()
        assert torch == [str(rank), "0", str(2 * page.each)]
        seen.append(gpu)
    assert tuple(seen) == page.gpus


def test_the_scaling_recipe_of_polaris_starts_a_process_a_gpu_without_a_script_of_its_own():
    lines = script(ROOT / "recipes" / "polaris_scaling.yaml", "polaris")
    text = "\n".join(lines)
    for nodes in (1, 2):
        assert f"#PBS -l select={nodes}:ncpus=32:system=polaris:mpiprocs=4" in lines
        assert (
            f'mpiexec -n {4 * nodes} --ppn 4 --depth=8 --cpu-bind depth bash "$nsw" rank python train.py -b 128' in text
        )
        assert (
            f"nodes-{nodes}_batch-128.baseline.r1 mpiexec {'+'.join(['4'] * nodes)} 4 CUDA_VISIBLE_DEVICES 3,2,1,0"
            in text
        )
    assert "#PBS -l place=scatter" in lines
    assert "gpu_affinity" not in text


def test_on_a_workstation_mpirun_and_torchrun_start_on_the_machine_itself(tmp_path):
    # pytorch.org/docs/stable/elastic/run.html: "Single-node multi-worker"
    for launcher, line in (
        ("mpirun", 'mpirun -np 2 bash "$nsw" rank python train.py'),
        ("torchrun", "python -m torch.distributed.run --standalone --nproc_per_node=2"),
    ):
        (tmp_path / "r.yaml").write_text(
            f"nsw: 1\nname: t\napp: {{command: python train.py, launcher: {{kind: {launcher}, processes: 2}}}}\n"
            "passes: [baseline: {}]\nresources: {gpus: 2, time: 10m}\n"
        )
        assert line in "\n".join(script(tmp_path / "r.yaml", "workstation"))
