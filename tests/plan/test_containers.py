"""What stands around what when the program runs in a container: launcher, runtime, profiler, program."""

import hashlib
import subprocess

import pytest

from nsw.errors import InputError
from nsw.plan.command import RUNTIMES, Box, folder_of_tool, in_container
from nsw.resources import templates_folder

NSYS = "/opt/nvidia/nsight-systems/2024.2.1/bin/nsys"
RECIPE = "nsw: 1\nname: t\nmatrix: {{v: [a b]}}\nresources: {{gpus: 0}}\npasses: [{one}]\napp: {{command: [./prog, '{{{{ v }}}}'], {more}}}\n"


def command(planner, one="baseline", more="", container="", **facts):
    box = "container: {runtime: apptainer, image: '/i-{{ v }}.sif', options: [--nv]" + container + "}"
    text = RECIPE.format(one=one, more=", ".join(filter(None, (more, box))))
    (run,) = planner.plan(text, "scheduler: slurm, profilers: {nsys: " + NSYS + "}", **facts).runs
    return list(run.command)


def shape(words):
    """The programs in their order, a runtime for the line of shell that starts it."""
    known = {"srun": "srun", "torchrun": "torchrun", "./prog": "prog", "nsys": "nsys", NSYS: "site's nsys"}
    return [known.get(w) or w.split()[1] for w in words if w in known or w.startswith("exec ")]


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ("", ["apptainer", "prog"]),
        ("launcher: {kind: srun, processes: 2}", ["srun", "apptainer", "prog"]),
        ("launcher: {kind: torchrun, processes: 2}", ["apptainer", "torchrun", "prog"]),
    ],
)
def test_a_launcher_starts_containers_but_torchrun_is_in_the_image(planner, more, wanted):
    assert shape(command(planner, more=more)) == wanted


@pytest.mark.parametrize(
    ("more", "container", "wanted"),
    [
        ("", "", ["apptainer", "nsys", "prog"]),
        ("", ", profiler: outside", ["apptainer", "site's nsys", "prog"]),
        ("launcher: {kind: srun, processes: 2}", "", ["srun", "apptainer", "nsys", "prog"]),
        ("launcher: {kind: srun, processes: 2}", ", profiler: outside", ["srun", "apptainer", "site's nsys", "prog"]),
        ("launcher: {kind: srun, processes: 2, profiler: outside}", "", ["site's nsys", "srun", "apptainer", "prog"]),
        ("launcher: {kind: torchrun, processes: 2}", "", ["apptainer", "nsys", "torchrun", "prog"]),
        ("launcher: {kind: torchrun, processes: 2, profiler: inside}", "", ["apptainer", "torchrun", "nsys", "prog"]),
    ],
)
def test_the_profiler_is_the_image_s_or_the_site_s(planner, more, container, wanted):
    words = command(planner, "timeline", more, container)
    assert shape(words) == wanted
    bound = [w for w in words if w.startswith("--bind=")]
    folder = "/opt/nvidia/nsight-systems/2024.2.1"
    assert bound == ([f"--bind={folder}:{folder}"] if "site's nsys" in wanted else [])


def test_values_travel_as_arguments_and_no_shell_parses_them(planner):
    words = command(planner)
    assert words[:2] == ["bash", "-c"]
    assert words[3:] == ["nsw", "--nv", "/i-a b.sif", "./prog", "a b"]
    scripts = '"${PWD%/*/*/*}"/scripts'
    assert words[2] == f'exec apptainer exec --bind="$PWD":"$PWD" --bind={scripts}:{scripts} --pwd="$PWD" "$@"'


def test_a_profiler_that_stands_among_all_programs_of_the_site_is_not_brought_in(planner):
    text = RECIPE.format(one="baseline, timeline", more="container: {runtime: podman, image: i, profiler: outside}")
    plan = planner.plan(text, "scheduler: slurm, profilers: {nsys: /usr/bin/nsys}")
    (absent,) = plan.absent
    assert "/usr/bin/nsys cannot be mounted into the container" in absent.reason


def test_with_a_profiler_inside_nothing_is_looked_for_on_the_site(planner):
    text = RECIPE.format(one="timeline", more="container: {runtime: podman, image: i}")
    (run,) = planner.plan(text, tools={}, missing={"nsys": "nsys is not here"}).runs
    assert "nsys" in run.command


def test_the_export_on_the_compute_node_runs_in_the_container_that_has_the_profiler(planner):
    text = RECIPE.format(one="timeline", more="container: {runtime: apptainer, image: /i}") + "collect: tables\n"
    (run,) = planner.plan(text, "scheduler: slurm").runs
    assert run.after[0][2].startswith("exec apptainer")


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        (NSYS, "/opt/nvidia/nsight-systems/2024.2.1"),
        ("/o/nsys-2/target-linux-x64/nsys", "/o/nsys-2"),
        ("/o/nsys-2/nsys", "/o/nsys-2"),
        ("/usr/bin/nsys", None),
        ("/usr/local/bin/nsys", None),
        ("nsys", None),
    ],
)
def test_the_folder_of_a_profiler(path, folder):
    assert folder_of_tool(path) == folder


# each line as the runtime's documentation writes it
@pytest.mark.parametrize(
    ("runtime", "before", "end"),
    [
        ("apptainer", "apptainer exec --bind=B --bind=A --pwd=W", "--bind=/d:/e --env=K=v --nv -o i"),
        ("singularity", "singularity exec --bind=B --bind=A --pwd=W", "--bind=/d:/e --env=K=v --nv -o i"),
        ("shifter", "shifter --volume=B --volume=A --workdir=W", "--volume=/d:/e --env=K=v -o --image=i"),
        ("podman", "podman run --rm --env-host --volume=B --volume=A --workdir=W",
         "--volume=/d:/e --env=K=v --device=nvidia.com/gpu=all -o i"),
        ("docker", "docker run --rm --init --volume=B --volume=A --workdir=W", "--volume=/d:/e --env=K=v --gpus=all -o i"),
        ("sarus", "sarus run --mount=type=bind,source=B --mount=type=bind,source=A --workdir=W",
         "--mount=type=bind,source=/d,destination=/e --env=K=v -o i"),
        ("charliecloud", "ch-run --bind=B --bind=A --cd=W", "--bind=/d:/e --set-env=K=v -o i --"),
        ("pyxis", "srun --container-mounts=B,A,/d:/e --container-workdir=W",
         "-o --container-image=i --ntasks=1 env K=v"),
    ],
)  # fmt: skip
def test_the_words_of_each_runtime(runtime, before, end):
    box = Box(runtime, "i", ("-o",), folders=("app-x",), mounts=("/d:/e",), env=(("K", "v"),), gpus=True)
    words = in_container(box, ("prog", "a b"))
    app, run = '"${PWD%/*/*/*}"/app-x', '"$PWD"'
    shell = words[2]
    for folder, name in ((app, "A"), (run, "B")):
        shell = shell.replace(f"{folder}:{folder}", name).replace(f"{folder},destination={folder}", name)
    shell = shell.replace(run, "W").partition("exec ")[2]
    assert shell == f'{before} "$@"'
    assert words[3:] == ("nsw", *end.split(), "prog", "a b")
    assert runtime in RUNTIMES


def run_by(words, tmp_path, **variables):
    """What a stand-in of each runtime is given, by bash."""
    tools = tmp_path / "bin"
    tools.mkdir(exist_ok=True)
    for name in ("docker", "apptainer", "srun"):
        (tools / name).write_text('#!/bin/bash\nprintf \'%s\\n\' "$0" "$@"\n')
        (tools / name).chmod(0o755)
    environment = {"PATH": f"{tools}:/usr/bin:/bin", **variables}
    done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[1:]


def test_variables_of_the_job_are_filled_in_in_mounts_and_images(tmp_path):
    box = Box("apptainer", "$IMAGES/a b.sif", ("--nv",), mounts=("$DATA:/d $x:ro",))
    words = run_by(in_container(box, ("prog", "$DATA")), tmp_path, DATA="/a b", IMAGES="/im")
    assert "--bind=/a b:/d :ro" in words
    assert words[-4:] == ["--nv", "/im/a b.sif", "prog", "$DATA"]


def test_docker_gets_the_job_s_variables_but_for_the_image_s_own(tmp_path):
    words = run_by(in_container(Box("docker", "i"), ("prog",)), tmp_path, GIVEN="x y", HOME="/h", LD_LIBRARY_PATH="/l")
    names = [words[at + 1] for at, word in enumerate(words) if word == "--env"]
    assert "GIVEN" in names
    assert not {"PATH", "HOME", "LD_LIBRARY_PATH"} & {*names}
    assert words[-2:] == ["i", "prog"]


def test_pyxis_is_the_launcher_s_own_srun(planner):
    box = "container: {runtime: pyxis, image: nvcr.io#x, mounts: [/d], env: {A: b}}"
    text = RECIPE.format(one="timeline", more=f"launcher: {{kind: srun, processes: 2}}, {box}")
    words = list(planner.plan(text, "scheduler: slurm").runs[0].command)
    assert words[2].startswith('exec srun --container-mounts="$PWD":"$PWD"')
    assert "/d:/d" in words[2]
    assert words[3:5] == ["nsw", "--container-image=nvcr.io#x"]
    assert words.count("srun") == 0
    assert "--ntasks=2" in words
    assert words.index("env") < words.index("nsys") < words.index("./prog")


@pytest.mark.parametrize("launcher", ["{kind: mpirun, processes: 2}", "{kind: mpiexec, processes: 2}"])
def test_pyxis_needs_srun(planner, launcher):
    box = "container: {runtime: pyxis, image: i}"
    with pytest.raises(InputError, match="started by srun"):
        planner.plan(RECIPE.format(one="baseline", more=f"launcher: {launcher}, {box}"), "scheduler: slurm")


def test_an_image_file_without_its_path_is_refused_before_the_queue(planner):
    box = "container: {runtime: apptainer, image: my.sif}"
    with pytest.raises(InputError, match=r"my\.sif is a file without its path"):
        planner.plan(RECIPE.format(one="baseline", more=box), "scheduler: slurm")
    assert planner.plan(RECIPE.format(one="baseline", more=f"setup: [ln -s /x my.sif], {box}")).runs
    assert planner.plan(RECIPE.format(one="baseline", more=box.replace("my.sif", "docker://x"))).runs


def test_the_digest_of_an_image_file_is_recorded(tmp_path):
    (tmp_path / "a b.sif").write_text("x")
    script = f". {templates_folder() / 'job/machinery.sh'} && nsw_image apptainer '{tmp_path}/a b.sif'"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"sha256:{hashlib.sha256(b'x').hexdigest()}"
