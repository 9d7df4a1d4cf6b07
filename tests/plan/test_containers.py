"""What stands around what when the program runs in a container: launcher, runtime, profiler, program."""

import shlex

import pytest

from nsw.plan.command import RUNTIMES, Box, boxed, folder_of_tool

NSYS = "/opt/nvidia/nsight-systems/2024.2.1/bin/nsys"
RECIPE = "nsw: 1\nname: t\nmatrix: {{v: [a b]}}\nresources: {{gpus: 0}}\npasses: [{one}]\napp: {{command: [./prog, '{{{{ v }}}}'], {more}}}\n"


def command(planner, one="baseline", more="", container="", **facts):
    box = "container: {runtime: apptainer, image: 'i-{{ v }}.sif', options: [--nv]" + container + "}"
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
    assert words[3:] == ["nsw", "--nv", "i-a b.sif", "./prog", "a b"]
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
    text = RECIPE.format(one="timeline", more="container: {runtime: apptainer, image: i}") + "collect: tables\n"
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


@pytest.mark.parametrize(
    ("runtime", "before", "image"),
    [
        ("apptainer", "apptainer exec --bind=B --bind=A --pwd=W", "i"),
        ("singularity", "singularity exec --bind=B --bind=A --pwd=W", "i"),
        ("shifter", "shifter --volume=B --volume=A --workdir=W", "--image=i"),
        ("podman", "podman run --rm --env-host --volume=B --volume=A --workdir=W", "i"),
    ],
)
def test_the_words_of_each_runtime(runtime, before, image):
    words = boxed(Box(runtime, "i", ("-o",), folders=("app-x",)), ("prog", "a b"))
    app = '"${PWD%/*/*/*}"/app-x'
    shell = words[2].replace(f"{app}:{app}", "A").replace('"$PWD":"$PWD"', "B").replace('"$PWD"', "W")
    assert shell == f'exec {before} "$@"'
    assert words[3:] == ("nsw", "-o", image, "prog", "a b")
    assert shlex.split(words[2])
    assert runtime in RUNTIMES
