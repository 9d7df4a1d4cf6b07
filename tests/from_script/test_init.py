"""`nsw init --from-script`: what it writes and says, and what it refuses."""

import resource

import pytest

from nsw.convert.from_script import convert
from nsw.errors import UsageError
from nsw.recipe.load import load_recipe
from nsw.site.load import read_sites

HEAD = "#!/bin/bash\n#SBATCH -p gpu --gres=gpu:1 -t 10\n"


@pytest.fixture
def init(nsw, home, monkeypatch):
    """`init(text, *words)`: what is said of a script, which is job.sh."""
    (home / "sites.yaml").unlink()
    monkeypatch.delenv("NSW_SITES")

    def call(text, *words):
        (home / "job.sh").write_text(text)
        return nsw("init", "--from-script", "job.sh", *words)

    return call


def loaded(home, name="recipe.yaml"):
    return load_recipe(home / name).recipe


def test_recipe_and_site_are_written_and_each_line_is_accounted_for(init, home):
    (home / "prog.cu").write_text("")
    said = init(
        f"{HEAD}#SBATCH -J mine\nmodule load cuda\nnvcc prog.cu -o prog\nrm -f old\nnsys profile -t cuda -o x ./prog 1\n"
    )
    assert said.code == 0, said.err
    recipe = loaded(home)
    assert (recipe.name, recipe.app.command, recipe.app.files) == ("mine", "./prog 1", ["prog.cu"])
    assert recipe.app.build.command == "nvcc prog.cu -o prog"
    assert recipe.resources.time == 540
    (one,) = read_sites(home / "sites.yaml")
    assert (one.site.name, one.site.scheduler, one.site.partition, one.site.modules) == (
        "slurm",
        "slurm",
        "gpu",
        ["cuda"],
    )
    for line in (
        "2         -p gpu",
        "passes: timeline by nsys",
        "nsw names the report itself",
        "app.build",
        "site: modules",
    ):
        assert line in said.out
    told, _, unknown = said.out.partition("not understood of job.sh")
    assert "rm -f old" in unknown
    assert "rm -f old" not in told
    assert "#   6        rm -f old: nsw does not run it" in (home / "recipe.yaml").read_text()
    assert "nsw plan recipe.yaml --site slurm --sites sites.yaml" in said.out


def test_nothing_is_written_over_and_the_site_is_added(init, home):
    assert init(f"{HEAD}nsys profile ./a\n").code == 0
    again = init(f"{HEAD}nsys profile ./b\n")
    assert again.code == 2
    assert "recipe.yaml already exists" in again.err
    assert "./b" not in (home / "recipe.yaml").read_text()
    same = init(f"{HEAD}nsys profile ./b\n", "-o", "other.yaml")
    assert same.code == 2
    assert "slurm" in same.err
    assert not (home / "other.yaml").exists()
    assert init(f"{HEAD}nsys profile ./b\n", "-o", "other.yaml", "--site", "mine").code == 0
    assert [one.site.name for one in read_sites(home / "sites.yaml")] == ["slurm", "mine"]


def test_values_that_look_secret_are_not_shown(init, home):
    said = init(f"{HEAD}export HF_TOKEN=abc123\nPASSWORD=xyz789\nDB_PASSWORD=q1w2e3 nsys profile ./a\n")
    assert said.code == 0, said.err
    for secret in ("abc123", "xyz789", "q1w2e3"):
        assert secret not in said.out + said.err
    assert {name: type(value).__name__ for name, value in loaded(home).app.env.items()} == {
        "HF_TOKEN": "Secret", "DB_PASSWORD": "Secret",
    }  # fmt: skip


def test_a_screen_is_enough(init):
    lines = "".join(f"export V{n}={n}\nrm -f f{n}\ncd /d{n}\nW{n}=$(./f)\n" for n in range(40))
    said = init(f"{HEAD}{lines}nsys profile ./a\n")
    assert said.code == 0, said.err
    assert len(said.out.splitlines()) <= 24
    assert "more; recipe.yaml has all" in said.out


@pytest.mark.parametrize(
    ("command", "launcher"),
    [
        ("mpirun -np 4 nsys profile ./a", {"kind": "mpirun", "processes": 4, "share_gpus": True}),
        (
            "nsys profile mpirun -np 4 ./a",
            {"kind": "mpirun", "processes": 4, "profiler": "outside", "share_gpus": True},
        ),
        ("nsys profile torchrun --nproc_per_node=4 ./a.py", {"kind": "torchrun", "processes": 4, "share_gpus": True}),
        ("srun -n 4 -N 2 --mpi=pmix nsys profile ./a", {"kind": "srun", "processes": 4, "options": ["--mpi=pmix"]}),
        ("mpirun -np $N nsys profile ./a", {"kind": "mpirun", "processes": 1}),
    ],
)
def test_launchers_are_where_the_script_has_them(init, home, command, launcher):
    assert init(f"{HEAD}N=$(nproc)\n{command}\n").code == 0
    assert loaded(home).app.launcher.model_dump(exclude_unset=True) == launcher


def test_the_arguments_of_the_script_are_given_behind_the_dashes(init, home):
    text = f'{HEAD}case $1 in nsys) P="nsys profile";; ncu) P=ncu;; esac\nsrun -n $2 $P ./a "$3"\n'
    assert init(text, "--", "ncu", "1", "two words").code == 0
    recipe = loaded(home)
    assert (recipe.app.command, recipe.app.launcher.processes) == ("./a 'two words'", 1)
    assert [one.kind for one in recipe.passes] == ["counters"]
    assert "Not understood" not in (home / "recipe.yaml").read_text()


def test_what_the_shell_computes_must_be_filled_in(init, home, nsw):
    said = init(f"{HEAD}N=$(./count)\nnsys profile ./a --threads $N\n")
    assert "fill it in in app.command" in said.out
    command = loaded(home).app.command
    assert command == './a --threads "${NSW_FILL_IN:?line 4 of job.sh: write here what stands there}"'


def test_a_loop_over_words_is_a_matrix(init, home):
    said = init(f"{HEAD}for n in 1 2 4; do\n  nsys profile -o r$n ./a --n $n\n  echo $n\ndone\n")
    assert "matrix: n" in said.out
    assert loaded(home).app.command == "./a --n {{ n }}"
    assert "  n: [1, 2, 4]\n" in (home / "recipe.yaml").read_text()
    assert init(f"{HEAD}for n in 1 2; do\n  nsys profile ./b\ndone\n", "-o", "b.yaml", "--force").code == 0
    assert "do not name it" in (home / "b.yaml").read_text()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("#!/bin/bash\necho hello\n", "job.sh starts no profiler and no program that nsw recognises"),
        ("#!/bin/bash\necho 'hello\n", "job.sh:2: a quote begins and does not end"),
        ("#!/bin/csh\nsetenv A b\n", "job.sh:1: this is a script for csh"),
    ],
)
def test_scripts_that_cannot_be_taken_are_refused(init, home, text, says):
    said = init(text)
    assert said.code == 2
    assert says in said.err
    assert not (home / "recipe.yaml").exists()


def test_init_takes_one_source(nsw, home):
    for words in (("--from", "x"), ("--host", "h")):
        assert nsw("init", "--from-script", "job.sh", *words).code == 2
    said = nsw("init", "--from-script", "none.sh")
    assert said.code == 2
    assert "none.sh cannot be read" in said.err


def test_the_program_alone_goes_with_a_profiler_around_its_launcher(init, home):
    assert init(f"{HEAD}mpirun -np 2 ./a\nnsys profile mpirun -np 2 ./a\n").code == 0
    assert [one.kind for one in loaded(home).passes] == ["baseline", "timeline"]
    assert loaded(home).app.launcher.profiler == "outside"


def test_signs_of_jinja_stay_what_they_are(init, home, nsw):
    lines = "A=(1 2)\nexport N=${#A[@]}\nexport B='{{ x }}{% y %}'\nmpirun -np 1 -x C='{{ z }}' nsys profile ./a '{# c #}'\n"
    assert init(f"{HEAD}{lines}").code == 0
    text = nsw("render", "recipe.yaml", "--sites", "sites.yaml", "-s", "slurm").out
    for words in (
        "'A=(1 2)'",
        "'export N=${#A[@]}'",
        "export B='{{ x }}{% y %}'",
        "'C={{ z }}'",
        "'{# c #}'",
    ):
        assert words in text


def test_a_script_without_a_profiler_is_told_so_and_condas_activate_stays_as_it_is(init, home):
    said = init(f"{HEAD}source activate myenv\nsource gone.sh\npython train.py\n")
    assert loaded(home).app.setup == ["source activate myenv"]
    assert "the script profiles nothing: add a pass such as `timeline: {}`" in said.out
    assert "source gone.sh" in said.out.partition("not understood of job.sh")[2]
    assert "profiles nothing" not in init(f"{HEAD}nsys profile ./prog\n./prog\n", "--force").out


def test_a_file_of_settings_is_named_by_its_whole_path(init, home):
    (home / "env.sh").write_text("")
    said = init(f"{HEAD}source env.sh\n. other.sh\nnsys profile ./a\n")
    assert loaded(home).app.setup == [f"source {home}/env.sh"]
    assert "other.sh" in said.out.partition("not understood")[2]


@pytest.mark.parametrize(
    "line",
    [
        "echo 1 > input", "cat > input <<EOF\n1\nEOF", "env A=1 ./b", "cp a b", "./b", "(cp a x && ./b)", "test -f x && ./b",
        "mpirun -np 1 ./a : -np 2 ./b", "python prepare.py", "#SBATCH -a 1-3\n", "./$ALONE",
    ],
)  # fmt: skip
def test_what_the_recipe_does_not_do_is_named(init, line):
    head, line = (f"{HEAD}{line}", "-a 1-3") if line.startswith("#") else (HEAD, line)
    said = init(f"{head}{line}\nnsys profile ./a\n" if head == HEAD else f"{head}nsys profile ./a\n")
    assert said.code == 0, said.err
    first = line.split()[0].lstrip("(").rstrip(";")
    assert first in said.out.partition("not understood of job.sh")[2]


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_nobody_reads_the_recipe_who_cannot_read_the_script(init, home, mode):
    text = f"{HEAD}nsys profile ./a\n"
    (home / "job.sh").write_text(text)
    (home / "job.sh").chmod(mode)
    assert init(text).code == 0
    assert (home / "recipe.yaml").stat().st_mode & 0o777 == mode & 0o666
    (home / "recipe.yaml").chmod(0o666)
    assert init(text, "--force").code == 0
    assert (home / "recipe.yaml").stat().st_mode & 0o777 == mode


def test_a_short_script_whose_variables_expand_to_much_is_refused(tmp_path):
    text = f"{HEAD}A={'x' * 60_000}\n" + "./a $A $A $A $A\n" * 500
    with pytest.raises(UsageError, match="with its variables replaced by their values it has more than 16,777,216"):
        convert(text, tmp_path / "job.sh", site=None, sites="s", recipe="r")


def test_long_words_of_a_loop_are_counted_once(tmp_path):
    words = "1234567890 " * 20_000
    text = f"{HEAD}for n in {words}; do\n  nsys profile ./a $n\n" + "  true\n" * 200 + "done\n"
    assert convert(text, tmp_path / "job.sh", site=None, sites="s", recipe="r").recipes


def test_gpus_are_counted_without_the_limits_of_reading_a_script(tmp_path):
    limits = []
    convert(
        "nsys profile ./a\n", tmp_path / "job.sh", site=None, sites="s", recipe="r",
        gpus=lambda: limits.append(resource.getrlimit(resource.RLIMIT_AS)) or 1,
    )  # fmt: skip
    assert limits == [resource.getrlimit(resource.RLIMIT_AS)]
