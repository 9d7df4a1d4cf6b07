"""What a run needs: expressions of the recipe, and the site where the recipe is silent."""

import pytest

from nsw.errors import InputError

HEAD = "nsw: 1\nname: t\napp: {command: ./p}\npasses: [baseline]\nmatrix: {n: [2]}\n"
SITE = "scheduler: slurm, account: ours, queue: usual, qos: plain, gpus: {per_node: 4}"


def needs(planner, resources: str, site: str = SITE):
    (run,) = planner.plan(f"{HEAD}resources: {{{resources}}}\n", site).runs
    return run.resources


def test_every_value_may_be_an_expression(planner):
    found = needs(
        planner,
        'gpus: "{{ n * 2 }}", nodes: "{{ n }}", cpus_per_task: "{{ n + 1 }}", memory: "{{ n }}G", time: "{{ n }}m",'
        ' exclusive: "{{ n > 1 }}", queue: q',
    )
    assert (found.gpus, found.nodes, found.cpus_per_task, found.memory_bytes) == (4, 2, 3, 2 << 30)
    assert (found.time_s, found.exclusive, found.queue) == (120, True, "q")


def test_the_site_fills_in_what_the_recipe_leaves_open(planner):
    found = needs(planner, "gpus: 0")
    assert (found.queue, found.account, found.qos, found.time_s) == ("usual", "ours", "plain", 600)
    assert (found.cpus_per_task, found.memory_bytes, found.exclusive) == (None, None, False)


def test_the_recipe_goes_before_the_site(planner):
    found = needs(planner, "gpus: 0, partition: mine, account: me, qos: high")
    assert (found.queue, found.account, found.qos) == ("mine", "me", "high")


def test_lines_of_the_recipe_are_kept_but_for_expressions(planner):
    lines = "['#SBATCH --constraint=a100', '#SBATCH --exclude=nid{{ n }}', '#SBATCH --mail-user={me}']"
    assert needs(planner, f"gpus: 0, extra: {lines}").extra == (
        "#SBATCH --constraint=a100", "#SBATCH --exclude=nid2", "#SBATCH --mail-user={me}",
    )  # fmt: skip


def test_cases_whose_lines_differ_have_jobs_of_their_own(planner):
    recipe = HEAD.replace("[2]", "[2, 3]") + "resources: {gpus: 0, extra: ['#SBATCH --exclude=nid{{ n }}']}\n"
    assert [job.resources.extra for job in planner.plan(recipe, SITE).jobs] == [
        ("#SBATCH --exclude=nid2",), ("#SBATCH --exclude=nid3",),
    ]  # fmt: skip


def test_a_line_that_contradicts_the_layout_is_named_with_its_value(planner):
    with pytest.raises(InputError, match="the line --gpus-per-node=2 asks for 2 GPUs a node, and the recipe for 1"):
        needs(planner, "gpus: 1, extra: ['#SBATCH --gpus-per-node={{ n }}']")


@pytest.mark.parametrize(
    ("resources", "told"),
    [('nodes: "{{ n / 4 }}"', "expected a whole number of at least 1, found 0.5"),
     ('nodes: "{{ n - 2 }}"', "expected a whole number of at least 1, found 0"),
     ('gpus: "{{ 0 - n }}"', "expected a whole number of at least 0, found -2"),
     ('cpus_per_task: "{{ \'many\' }}"', "expected a whole number of at least 1, found 'many'"),
     ('time: "{{ n }} parsecs"', "'parsecs' is not a unit of time"),
     ('memory: "{{ n }}X"', "expected a size such as 32G, found '2X'"),
     ('exclusive: "{{ n }}"', "expected true or false, found 2")],
)  # fmt: skip
def test_a_bad_value_is_named_with_its_case(planner, resources, told):
    with pytest.raises(InputError) as caught:
        needs(planner, resources + ("" if "gpus" in resources else ", gpus: 0"))
    (fault,) = caught.value.diagnostics
    assert f"case n-2: {told}" in fault.message
    assert (fault.mark.line, fault.source_line[fault.mark.column - 1]) == (6, '"')


@pytest.mark.parametrize(
    ("app", "told"),
    [("{command: './p {{ 1 // (n - 2) }}'}", "zero"), ("{command: ./p, env: {A: '{{ 1 // (n - 2) }}'}}", "zero"),
     ("{command: ./p, launcher: {kind: srun, processes: '{{ n - 2 }}'}}", "expected a whole number of at least 1"),
     ("{command: [./p, '{{ 1 // (n - 2) }}']}", "zero")],
)  # fmt: skip
def test_a_command_that_cannot_be_filled_in_is_told_with_its_case_and_line(planner, app, told):
    text = f"nsw: 1\nname: t\napp: {app}\npasses: [baseline]\nmatrix: {{n: [2]}}\nresources: {{gpus: 0}}\n"
    (fault,) = planner.faults(text)
    assert "case n-2: " in fault.message
    assert told in fault.message
    assert fault.mark.line == 3


def test_a_passs_own_time_may_be_an_expression_and_its_fault_is_told_there(planner):
    text = "nsw: 1\nname: t\napp: {command: ./p}\nmatrix: {n: [2]}\nresources: {gpus: 0}\npasses:\n  - timeline: {time: TIME}\n"
    (run,) = planner.plan(text.replace("TIME", "'{{ n }}m'"), tools={"nsys": "nsys"}).runs
    assert run.resources.time_s == 120
    (fault,) = planner.faults(text.replace("TIME", "'{{ n }}q'"), tools={"nsys": "nsys"})
    assert (fault.mark.line, "'q' is not a unit of time" in fault.message) == (7, True)


def test_processes_a_node_are_asked_for_on_each_node(planner):
    assert needs(planner, "gpus: 0, nodes: 3, tasks_per_node: 4").tasks == 12


def test_environment_and_command_are_filled_case_by_case(planner):
    recipe = """\
        nsw: 1
        name: t
        app: {command: "./p {{ n }} {{ case }} {{ site.name }}", env: {A: "{{ n }}", B: plain}}
        passes: [baseline]
        matrix: {n: [1, 2]}
        resources: {gpus: 0}
        """
    first, second = planner.plan(recipe, "scheduler: local, env: {B: site, C: 'site only'}").runs
    assert first.command == ("./p", "1", "n-1", "here")
    assert second.command == ("./p", "2", "n-2", "here")
    assert second.env == {"A": "2", "B": "plain", "C": "site only"}


def test_what_the_site_does_not_set_is_asked_for_and_not_the_word_none(planner):
    recipe = "nsw: 1\nname: t\napp: {command: '{{ site.python }} x.py'}\npasses: [baseline]\nresources: {gpus: 0}\n"
    far = "scheduler: slurm, scratch: /s, transport: {kind: ssh, host: h}"
    (fault,) = planner.faults(recipe, far)
    assert "the site does not set 'python'" in fault.message
    assert fault.hint == "write `python:` below the site, in its sites file"
    assert planner.plan(recipe, f"{far}, python: python3").runs[0].command[0] == "python3"
    chosen = recipe.replace("site.python", "site.python | default(case)")
    assert planner.plan(chosen, far).runs[0].command == ("case", "x.py")


def test_the_same_expression_is_worked_out_for_each_case_anew(planner):
    recipe = HEAD.replace("[2]", "[1, 2, 3]") + 'resources: {gpus: 0, nodes: "{{ n }}"}\n'
    assert [r.resources.nodes for r in planner.plan(recipe).runs] == [1, 2, 3]


GRES = "scheduler: slurm, gres: 'gpu:a100:{{ gpus }}'"


@pytest.mark.parametrize(
    ("asked", "gres"),
    [
        ("gpus: 4", "gpu:a100:4"),
        ("gpus: 8, nodes: 2", "gpu:a100:4"),
        ("gpus: 0", None),
        ("gpus: 4, gres: 'gpu:h100:4'", "gpu:h100:4"),
    ],
)
def test_a_site_may_have_words_of_its_own_for_the_gpus_of_a_node(planner, asked, gres):
    recipe = f"nsw: 1\nname: t\napp: {{command: ./p}}\npasses: [baseline]\nresources: {{{asked}}}\n"
    (run,) = planner.plan(recipe, GRES).runs
    assert run.resources.gres == gres


def test_gpus_that_cannot_be_shared_out_equally_are_told_where_they_are_asked(planner):
    recipe = "nsw: 1\nname: t\napp: {command: ./p}\npasses: [baseline]\nresources: {gpus: 3, nodes: 2}\n"
    (fault,) = planner.faults(recipe, GRES)
    assert "3 GPUs cannot be divided equally among 2 nodes" in fault.message
    assert (fault.mark.line, fault.hint) == (5, "such as gpus: 4")


@pytest.mark.parametrize(("gpus", "gres"), [("0", None), ("2", "gpu:a100:2")])
def test_a_build_s_gpus_are_asked_for_in_the_site_s_words_too(planner, gpus, gres):
    app = f"{{command: ./p, build: {{command: make, gpus: {gpus}, time: 5m}}}}"
    recipe = f"nsw: 1\nname: t\napp: {app}\npasses: [baseline]\nresources: {{gpus: 4}}\n"
    (job,) = planner.plan(recipe, GRES).builds
    assert (job.resources.gres, job.resources.gpus, job.walltime_s) == (gres, int(gpus), 360)
