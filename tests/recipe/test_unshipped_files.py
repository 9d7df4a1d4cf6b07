"""A file beside the recipe that the command names, and that is not sent along, is warned of at its place."""

import pytest

from nsw.recipe.load import load_recipe


def warned(folder, app):
    for name in ("prog.py", "lib/tool.py", "out.txt", "python3", "n"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("")
    text = f"nsw: 1\nname: t\napp: {app}\npasses: [baseline]\nresources: {{gpus: 0}}\nmatrix: {{n: [1, 2]}}\n"
    (folder / "r.yaml").write_text(text)
    return [w for w in load_recipe(folder / "r.yaml").warnings if "app.files" in w.message]


@pytest.mark.parametrize(
    ("app", "name", "at", "hint"),
    [
        ("{command: 'python3 prog.py {{ n }}'}", "prog.py", "prog.py", "files: [prog.py]"),
        ("{command: './prog.py -n {{ n }} && ./prog.py'}", "prog.py", "./prog.py", "files: [prog.py]"),
        ("{command: [python3, prog.py, '{{ n }}']}", "prog.py", "prog.py", "files: [prog.py]"),
        ("{command: 'python3 prog.py {{ n }}', setup: [module load python]}", "prog.py", "prog.py", "files: [prog.py]"),
        ("{command: 'a.py prog.py {{ n }}', files: [out.txt]}", "prog.py", "prog.py", "files: [out.txt, prog.py]"),
        (
            "{command: 'python3 lib/tool.py {{ n }}'}",
            "lib/tool.py",
            "lib/tool.py",
            "files: [lib/tool.py], which puts tool.py beside the program",
        ),
    ],
)
def test_a_file_that_the_runs_will_not_find_is_told(tmp_path, app, name, at, hint):
    (warning,) = warned(tmp_path, app)
    assert warning.message == f"{name} is beside the recipe but not in app.files: the runs will not find it"
    assert warning.hint == hint
    assert warning.source_line[warning.mark.column - 1 : warning.mark.end_column - 1] == at


@pytest.mark.parametrize(
    "app",
    [
        "{command: 'python3 prog.py {{ n }}', files: [prog.py]}",
        "{command: 'python3 tool.py {{ n }}', files: [lib/tool.py]}",
        "{command: 'python3 lib/tool.py {{ n }}', files: [lib]}",
        "{command: 'cd /work && python3 prog.py {{ n }}'}",
        "{command: 'python3 prog.py {{ n }}', setup: [cd /work]}",
        "{command: 'python3 prog.py {{ n }}', setup: [module load python && cd /work]}",
        "{command: 'python3 prog.py {{ n }}', build: {command: make}}",
        "{command: 'python3 prog.py {{ n }}', container: {runtime: apptainer, image: x.sif}}",
        "{command: 'python3 /opt/prog.py {{ n }} > out.txt'}",
        "{command: 'python3 -m mine --out out.txt {{ n }}'}",
        "{command: 'python3 prog.py-{{ n }}'}",
        "{command: \"echo 'prog.py {{ n }}'\"}",
    ],
)
def test_what_the_runs_find_or_write_is_not_told(tmp_path, app):
    assert warned(tmp_path, app) == []


@pytest.mark.parametrize(
    ("app", "hint"),
    [
        ("{command: 'python3 porg.py {{ n }}', files: [prog.py]}", "did you mean 'prog.py'?"),
        (
            "{command: '/usr/bin/python3.11 -u porg.py {{ n }} | tee out.log', files: [prog.py]}",
            "did you mean 'prog.py'?",
        ),
        ("{command: [python3, porg.py, '{{ n }}'], files: [prog.py]}", "did you mean 'prog.py'?"),
        ("{command: 'python3 porg.py {{ n }}'}", "add it to app.files, or write its absolute path"),
        ("{command: './porg.py {{ n }}', files: [prog.py]}", "did you mean 'prog.py'?"),
        ("{command: 'mpirun -np 4 ./porg.py {{ n }}', files: [prog.py]}", "did you mean 'prog.py'?"),
        (
            "{command: ./porg.py, launcher: {kind: srun, processes: '{{ n }}'}}",
            "add it to app.files, or write its absolute path",
        ),
    ],
)
def test_a_script_that_is_nowhere_is_warned_of(tmp_path, app, hint):
    (warning,) = warned(tmp_path, app)
    assert warning.message == "porg.py is not in app.files: the runs will not find it"
    assert warning.hint == hint


@pytest.mark.parametrize(
    "app",
    [
        "{command: 'python3 /opt/porg.py {{ n }}'}",
        "{command: 'python3 ~/porg.py {{ n }}'}",
        "{command: 'python3 $HOME/porg.py {{ n }}'}",
        "{command: 'python3 ../porg.py {{ n }}'}",
        "{command: 'python3 p{{ n }}.py'}",
        "{command: 'python3 lib/made.py {{ n }}', files: [lib]}",
        "{command: 'lib/made {{ n }}', files: [lib]}",
        "{command: './porg-{{ n }}'}",
        "{command: '$HOME/porg {{ n }}'}",
        "{command: '~/porg {{ n }}'}",
        "{command: './porg {{ n }} || true'}",
        "{command: 'python3 -m mine porg.py {{ n }}'}",
        "{command: 'python3 -c 1 porg.py {{ n }}'}",
        "{command: 'echo {{ n }} > porg.py; python3 porg.py'}",
        "{command: 'python3 porg.py {{ n }} || true'}",
        "{command: 'python3 porg.py {{ n }}', build: {command: make}}",
        "{command: 'python3 porg.py {{ n }}', setup: [./makes_it]}",
        "{command: 'python3 porg.py {{ n }}', container: {runtime: apptainer, image: x.sif}}",
    ],
)
def test_a_script_that_may_be_there_is_not_warned_of(tmp_path, app):
    assert warned(tmp_path, app) == []
