"""Where a script's profiler is found, what stays before the program, and how many GPUs are asked for."""

import re

import pytest
import yaml

from nsw.convert.from_script import convert
from nsw.errors import UsageError
from nsw.recipe.load import load_recipe

HEAD = "#!/bin/bash\n#SBATCH --gpus=1\n#SBATCH -t 10\n"


@pytest.fixture
def converted(tmp_path):
    """`converted(text, head=..., **files)`: the recipe of a script, and the lines that are not understood."""

    def call(text, head=HEAD, **files):
        for name, content in files.items():
            (tmp_path / f"{name}.sh").write_text(content)
        script = tmp_path / "job.sh"
        made = convert(head + text, script, site=None, sites="sites.yaml", recipe="recipe.yaml")
        (tmp_path / "recipe.yaml").write_text(made.recipes[0][1])
        unknown = [f"{line.text}: {line.what}" for line in made.lines if not line.is_understood]
        return load_recipe(tmp_path / "recipe.yaml").recipe, unknown

    return call


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("srun numactl --physcpubind 0-31 /usr/local/cuda/bin/nsys profile ./a 1", "numactl --physcpubind 0-31 ./a 1"),
        ("taskset -c 0-3 nsys profile ./a 1", "taskset -c 0-3 ./a 1"),
        ("nice -n 5 timeout -s INT 60 stdbuf -oL nsys profile ./a 1", "nice -n 5 timeout -s INT 60 stdbuf -oL ./a 1"),
        ("time nsys profile ./a 1", "./a 1"),
        ("/usr/bin/time -v -o t.txt nsys profile ./a 1", "./a 1"),
        ("sudo -E nsys profile ./a 1", "./a 1"),
        ("env -u B nsys profile ./a 1", "env -u B ./a 1"),
        ("srun $CUDA_HOME/bin/nsys profile -o rep ./a 1", "./a 1"),
        ("srun $(which nsys) profile -o rep ./a 1", "./a 1"),
        ("srun --cpu-bind cores --kill-on-bad-exit=1 -l --unbuffered nsys profile ./a 1", "./a 1"),
        ("srun ./bind.sh nsys profile -o rep ./a 1", "./bind.sh ./a 1"),
        ("A=(nsys profile -t cuda)\nA+=(-o x)\n'srun' \"${A[@]}\" ./a 1", "./a 1"),
        ("P='nsys profile -t cuda'\nsrun $P ./a 1", "./a 1"),
        ("P=\nif [ \"$M\" = y ]; then P='nsys profile'; fi\nsrun $P ./a 1", "./a 1"),
        ('run() { nsys profile -o $1 "${@:2}"; }\nf() { local n=$2; shift; run $1 ./a $n; }\nf x 1', "./a 1"),
        ("bash -c 'source env.sh && cd /x && nsys profile -o x ./a 1'", "source env.sh; cd /x; ./a 1"),
        ("nsys launch -t cuda ./a 1\nnsys start\nnsys stop", "./a 1"),
        ("MODE=${1:-fast}\nnsys profile ./a $MODE", "./a fast"),
        ("P='nsys profile'\nP+=' -t cuda ./a'\neval \"$P 1\"", "./a 1"),
        ("if [ \"$M\" = y ]; then C='time nsys profile ./a 1'; else C='other'; fi\neval $C", "./a 1"),
        ("S=$( { time nsys profile ./a 1 > /dev/null; } 2>&1 )", "./a 1"),
        ('echo "$(wc -l x | cut -d "(" -f1)"\nN=$(cut -d "(" -f1 x)\nnsys profile ./a 1', "./a 1"),
        ("mpirun -np 1 -output-filename $HOME/o.$J bash -c 'nsys profile -o x ./a 1'", "./a 1"),
        ("srun ./bind.sh bash -c 'nsys profile -o x ./a 1'", "./bind.sh ./a 1"),
        ("mpiexec.hydra -n 1 nsys profile ./a 1", "./a 1"),
        ("srun bash wrap.sh ./a 1", "export V=$SLURM_LOCALID; ./a 1"),
        ("cat > made.sh <<'EOF'\nnsys profile -o x \"$@\"\nEOF\nsrun ./made.sh ./a 1", "./a 1"),
    ],
)  # fmt: skip
def test_the_profiler_is_found_wherever_it_is(converted, line, command):
    wrap = (
        'export V=$SLURM_LOCALID\nif [ "$SLURM_PROCID" = 0 ]; then\n  exec nsys profile -o x "$@"\nelse\n  "$@"\nfi\n'
    )
    recipe, _ = converted(f"{line}\n", wrap=wrap)
    assert recipe.app.command == command
    assert [one.kind for one in recipe.passes] == ["timeline"]


@pytest.mark.parametrize(
    ("lines", "command"),
    [
        (': "${N:=3}" ${M=4}\nnsys profile ./a $N $M', "./a ${N:-3} ${M-4}"),
        ("N=2\n: ${N:=3}\nnsys profile ./a $N", "./a 2"),
        ('R=${R:-last}\nnsys profile ./a ${R:+--from "$R"} b', './a --from "${R:-last}" b'),
        ('R=\nnsys profile ./a ${R:+--from "$R"} b', "./a b"),
        ("for n in 1 2; do\n  cd /d/run_$n\n  nsys profile ./a $n\ndone", "cd /d/run_{{ n }} && ./a {{ n }}"),
        ("( cd /x; nsys profile ./a )", "cd /x && ./a"),
        ("D=${D:-$PWD/data}\nnsys profile ./a $D", "./a ${D:-{folder}/data}"),
        ("cd ${SLURM_SUBMIT_DIR:-.}/${SUB}\nnsys profile ./a", 'cd {folder}/"${SUB}" && ./a'),
        ("mpiexec -n 2 -env A=1 ./a 1", "./a 1"),
        ("python --version\nsrun hostname\nsrun python --version\npython -c 'import x'\npython a.py", "python a.py"),
        ("rm -f x\ntrain_it --n 3\n", "train_it --n 3"),
        ("T=$(srun ./a 1 | grep x)", "./a 1"),
        ('M=(3 4)\nfor i in "${!M[@]}"; do nsys profile ./a ${M[$i]} ${M[i]}; done', "./a 3 3"),
        ('declare -A T=([a]=x [b]=y)\nfor k in "${!T[@]}"; do nsys profile ./a $k ${T[$k]}; done', "./a a x"),
        ('f() { local x=(1 "2 3"); x+=(4); nsys profile ./a "${x[@]}"; }\nf', "./a 1 '2 3' 4"),
        ('A=(1 2)\nC="$(cat <<E\nnsys profile ./a ${A[@]} "x y" \\$Z\nE\n)"\nbash -c "$C"', "./a 1 2 'x y' $Z"),
        ('set -- -n 4\nwhile (( "$#" )); do case "$1" in -n) N=$2; shift 2 ;; esac; done\nnsys profile ./a $N', "./a 4"),
        ("for n in 1 2; do if ! nsys profile ./a $n; then echo; fi; done", "./a {{ n }}"),
    ],
)  # fmt: skip
def test_the_shell_says_what_runs(converted, tmp_path, lines, command):
    assert converted(f"{lines}\n")[0].app.command == command.replace("{folder}", str(tmp_path))


def test_a_variable_that_the_job_computes_twice_is_computed_twice(converted):
    recipe, _ = converted("M=$(hostname)\nM=${M:-x}\nnsys profile ./a $M\n")
    assert recipe.app.setup == ["export M=$(hostname)", 'export M="${M:-x}"']


def test_the_elements_of_a_function_s_array_are_known(converted):
    assert converted("f() { local x=(1 2); nsys profile ./a ${x[1]}; }\nf\n")[1] == []


def test_a_profiler_that_is_looked_up_is_there(converted):
    recipe, unknown = converted("if command -v nsys; then nsys profile ./a; elif which ncu; then ncu ./a; fi\n")
    assert ([one.kind for one in recipe.passes], unknown) == (["timeline"], [])
    _, unknown = converted("which nsys || module load n\nif ! which nsys; then module load n; fi\nnsys profile ./a\n")
    assert unknown == ["module load n: a condition: not carried over", "if ! which nsys: not carried over"]


def test_of_paths_and_a_name_of_a_profiler_the_name_is_taken(tmp_path):
    lines = 'P=/opt/x/ncu\n[ -x "$P" ] || P=/y/ncu\n[ -x "$P" ] || P=ncu\n$P ./a\n'
    made = convert(HEAD + lines, tmp_path / "job.sh", site=None, sites="s", recipe="r")
    assert "profilers" not in made.site
    assert len(made.recipes) == 1


def test_files_of_a_launcher_have_their_whole_paths(converted, tmp_path):
    recipe, unknown = converted("srun --prolog ../p.sh nsys profile ./a\n")
    assert (recipe.app.launcher.options, unknown) == (["--prolog", f"{tmp_path}/../p.sh"], [])


def test_a_default_in_a_container_is_taken_and_named(converted):
    recipe, unknown = converted('srun --container-image "${IMG:-/i.sqsh}" nsys profile ./a\n')
    assert recipe.app.container.image == "/i.sqsh"
    assert unknown == ["${IMG:-/i.sqsh}: the default is taken: write there what IMG is to be"]


def test_a_shell_of_its_own_and_a_folder_of_a_loop_are_understood(converted):
    assert converted("for n in 1 2; do cd /d/$n; nsys profile ./a; done\n")[1] == []
    recipe, unknown = converted("nsys profile ./a\n(exit 0)\n( nsys profile -t cuda ./a )\n")
    assert (len(recipe.passes), unknown) == (2, [])


def test_defaults_are_set_before_what_names_them(converted):
    recipe, _ = converted(": ${D:=/x}\nsource $D/e.sh\nnsys profile ./a\n")
    assert recipe.app.setup == ['source "${D:-/x}"/e.sh']


def test_the_folder_above_that_of_submission_is_another(converted, tmp_path):
    recipe, _ = converted('D="$(dirname "${SLURM_SUBMIT_DIR:-$(pwd)}")"\ncd "$D"\nnsys profile ./a\n')
    assert recipe.app.command == f"cd {tmp_path}/.. && ./a"


def test_a_folder_of_submission_within_a_default_of_its_own_is_named(converted):
    _, unknown = converted('E=${E:-"${PBS_O_WORKDIR:-$(pwd)}/e.sh"}\nsource "$E"\nnsys profile ./a\n')
    assert any(text.endswith("nsw submits from another folder: write its whole path") for text in unknown)


def test_what_sets_the_arguments_is_no_output(converted):
    recipe, _ = converted('eval set -- "$P"\nnsys profile ./a\n')
    assert recipe.app.setup == ['eval set -- "$P"']


def test_numbers_of_the_job_are_computed_once_also_without_a_profiler(converted):
    recipe, unknown = converted("srun torchrun --rdzv_id $RANDOM a.py\n")
    assert re.fullmatch(r"torchrun --rdzv_id \$job_RANDOM_\w+ a.py", recipe.app.command)
    assert recipe.app.setup[0].startswith("export job_RANDOM_")
    assert not unknown


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("#SBATCH --account= # yours\n", "it has no value"),
        ("#SBATCH --ntasks-per-node=\n", "it has no value"),
        (
            "cat > x <<E\n#SBATCH -p a\nE\n#SBATCH -p gpu\n",
            "it stands behind the first command, where nsw reads none, nor does Slurm",
        ),
    ],
)
def test_directives_that_ask_for_nothing_are_named(converted, line, reason):
    recipe, unknown = converted("nsys profile ./a\n", head=f"{HEAD}{line}")
    assert [text.rpartition(": ")[2] for text in unknown].count(reason) == 1
    assert not recipe.resources.extra


def test_a_wrapper_that_profiles_the_first_rank_is_a_pass_of_that_rank(converted):
    wrap = 'if [[ $SLURM_PROCID -eq 0 ]]; then\n  nsys profile "$@"\nelse\n  "$@"\nfi\n'
    recipe, _ = converted("srun -n 4 ./wrap.sh ./a\n", wrap=wrap)
    assert recipe.passes[0].ranks == "first"
    assert recipe.app.launcher.processes == 4


def test_a_script_that_its_caller_starts_on_each_rank_profiles_the_first(converted):
    lines = 'if [ "$OMPI_COMM_WORLD_LOCAL_RANK" -eq 0 ]; then\n  echo x\n  nsys profile "$@"\nelse\n  "$@"\nfi\n'
    recipe, unknown = converted(lines)
    assert [(one.kind, one.ranks) for one in recipe.passes] == [("timeline", "node")]
    assert [line.partition(": ")[2] for line in unknown] == [
        "its caller starts it on each rank: write app.launcher",
        "the script runs its own arguments: fill it in in app.command",
    ]


@pytest.mark.parametrize("count", ["mpirun -np", "aprun -n"])
def test_parts_of_a_launcher_with_one_program_are_one(converted, count):
    option = count.split()[1]
    recipe, unknown = converted(f"{count} 1 nsys profile ./a : {option} 3 ./a\n")
    assert (recipe.app.launcher.processes, recipe.passes[0].ranks, unknown) == (4, "first", [])
    _, unknown = converted(f"{count} 1 nsys profile ./a : {option} 3 ./b\n")
    assert "./b" in unknown[0]


@pytest.mark.parametrize(
    "line",
    [
        "rocprof --stats -o x.csv ./a 1",
        "rocprofv3 --pmc SQ_WAVES GRBM_COUNT --kernel-trace -- ./a 1",
        "rocprofv3 --sys-trace --output-format csv -d $D/x ./a 1",
        "rocprof-sys-sample -PTDH -- ./a 1",
        "rocprof-compute profile -n x --roof-only -- ./a 1",
    ],
)
def test_a_profiler_without_a_pass_leaves_the_program_alone(converted, line):
    recipe, unknown = converted(f"srun {line}\n")
    assert (recipe.app.command, recipe.passes[0].kind) == ("./a 1", "baseline")
    assert any("rocprof" in line for line in unknown)


@pytest.mark.parametrize(
    ("line", "host"),
    [
        ("perf record -F 199 -g --call-graph dwarf -o x -- ./a 1\nperf report -i x", {"tool": "perf", "knobs": {
         "freq": "199", "call-graph": "dwarf"}}),
        ("perf stat -e cycles -r 3 -x, -o x ./a 1", {"tool": "perf", "analysis": "stat", "options": ["-e", "cycles", "-r", "3"]}),
        ("py-spy record -o p.svg --rate 50 -- ./a 1", {"tool": "py-spy", "knobs": {"rate": "50"}}),
        ("tau_exec -T mpi -ebs ./a 1", {"tool": "tau", "options": ["-T", "mpi", "-ebs"]}),
    ],
)  # fmt: skip
def test_profilers_of_the_host_are_passes(converted, line, host):
    recipe, unknown = converted(f"srun {line}\n")
    assert recipe.app.command == "./a 1"
    assert recipe.passes[0].model_dump(exclude_unset=True, include={"tool", "analysis", "knobs", "options"}) == host
    assert not unknown


@pytest.mark.parametrize(
    ("options", "metrics", "passed_on", "named"),
    [
        ("--section Occupancy --section mine", ["section:Occupancy"], ["--section", "mine"], []),
        ("--section regex:.*", ["set:basic"], ["--section", "regex:.*"], ["section:regex:.*"]),
        ("--metric sm__cycles_elapsed.avg,nosuch__x.sum", ["sm__cycles_elapsed.avg"], [], ["nosuch__x.sum"]),
    ],
)
def test_what_ncu_is_asked_for_and_a_recipe_cannot_name_is_passed_on_or_named(
    converted, options, metrics, passed_on, named
):
    recipe, unknown = converted(f"ncu {options} ./a\n")
    assert (recipe.passes[0].metrics, recipe.passes[0].options) == (metrics, passed_on)
    assert [line.partition(": ")[0] for line in unknown] == named


def test_an_older_name_of_a_profiler_is_the_site_s(tmp_path):
    made = convert(
        f"{HEAD}amplxe-cl -collect hotspots -r x ./a\n", tmp_path / "job.sh", site=None, sites="s", recipe="r"
    )
    assert "profilers: {vtune: amplxe-cl}" in made.site


def test_directives_of_an_unknown_batch_system_are_named(converted):
    _, unknown = converted("nsys profile ./a\n", head='#!/bin/sh\n#PJM --rsc-list "node=1"\n#@ class = x\n# NOTE -x\n')
    assert [line.partition(": of a batch")[0] for line in unknown] == ['#PJM --rsc-list "node=1"', "#@ class = x"]


@pytest.mark.parametrize(
    "line", ["nsys profile ./run 'nsys profile ./x'", "nsys profile bash -c 'ncu -o x ./a'", "nsys profile ./a ncu ./b"]
)
def test_the_command_never_starts_a_profiler(converted, line):
    recipe, unknown = converted(f"{line}\n")
    assert recipe.app.command.startswith('"${NSW_FILL_IN:?')
    assert any("a profiler of its own" in text for text in unknown)


@pytest.mark.parametrize(
    "lines", ['export C="ncu -o x $1 ./a"\napptainer exec /i.sif $C 1', 'export C="ncu -o x ./a $1"\nsrun $C']
)
def test_an_exported_command_that_starts_a_profiler_is_parsed(converted, lines):
    recipe, _ = converted(f"{lines}\n")
    assert recipe.passes[0].kind == "counters"
    assert "C" not in recipe.app.command + "".join(recipe.app.env) + "".join(recipe.app.setup)


def test_a_variable_without_quotes_stays_without(converted):
    recipe, _ = converted('nsys profile ./a $NONE "$ONE" $HOME/x\n')
    assert recipe.app.command == './a $NONE "$ONE" "$HOME"/x'


@pytest.mark.parametrize(
    "lines",
    [
        "N=$(which nsys)\n$N profile ./a",
        'N=""\nif [ -d x ]; then N=$(command -v nsys); fi\nsrun "$N" profile ./a',
        'N="$(command -v nsys 2>/dev/null || true)"\n"$N" profile ./a',
        'N=/x/nsys\n[ -x "$N" ] || N=/y/nsys\n[ -x "$N" ] || N=nsys\n$N profile ./a',
    ],
)
def test_a_profiler_that_is_looked_up_is_found_in_its_variable(converted, lines):
    recipe, unknown = converted(f"{lines}\n")
    assert (recipe.app.command, recipe.passes[0].kind) == ("./a", "timeline")
    assert not any("name its path" in line for line in unknown)


def test_what_a_line_does_before_its_profiled_command_is_named_and_its_input_kept(converted):
    recipe, unknown = converted("srun bash -c 'cp x y; echo a; nsys profile ./a 1 < y'\n")
    assert recipe.app.command == "./a 1 < y"
    assert unknown == ["cp x y: bash -c runs it before the profiled program: not carried over"]


def test_an_option_of_a_launcher_whose_value_is_computed_is_no_program(converted):
    recipe, unknown = converted("E=$(cat e.txt)\nsrun --environment=$E nsys profile ./a\n")
    assert recipe.app.command == "./a"
    assert "srun --environment=...: only the job knows its value" in unknown


def test_programs_of_ranks_in_a_file_are_one_launcher_or_named(converted, tmp_path):
    conf = tmp_path / "ranks.conf"
    conf.write_text("# ranks\n0 nsys profile ./a 1\n1-3 ./a 1\n")
    recipe, unknown = converted("srun --multi-prog ranks.conf\n")
    assert (recipe.app.command, recipe.app.launcher.processes, recipe.passes[0].ranks) == ("./a 1", 4, "first")
    assert (recipe.app.launcher.options, unknown) == ([], [])
    conf.write_text("1,3 nsys profile ./a 1\n* ./a 1\n")
    recipe, _ = converted("srun -n 4 --multi-prog ranks.conf\n")
    assert (recipe.app.launcher.processes, recipe.passes[0].ranks) == (4, [1, 3])
    conf.write_text("0 nsys profile ./a 1\n1 ./b\n")
    assert "./b" in converted("srun --multi-prog ranks.conf\n")[1][0]
    recipe, unknown = converted("srun --multi-prog none.conf\n")
    assert "NSW_FILL_IN" in recipe.app.command
    assert "none.conf" in unknown[0]


def test_variables_of_a_container_are_separate_and_may_be_parameters(converted):
    recipe, unknown = converted(
        "D=$(./f)\nfor b in x y; do\n  apptainer exec --env A=1,B=$b -B $D /i.sif nsys profile ./a\ndone\n"
        "apptainer exec /i.sif nsys stats x\n"
    )
    assert recipe.app.container.env == {"A": "1", "B": "{{ b }}"}
    assert recipe.matrix.parameters["b"] == ["x", "y"]
    assert "-B $D: only the job knows its value" in unknown


def test_the_old_words_of_pbs_are_the_chunk_and_the_project_stays(converted):
    head = "#!/bin/bash\n#PBS -P me\n#PBS -l ncpus=12,mem=16GB,jobfs=8GB,walltime=600\n"
    resources = converted("nsys profile ./a\n", head=head)[0].resources
    assert (resources.cpus_per_task, resources.memory) == (12, 16 << 30)
    assert resources.extra == ["#PBS -P me", "#PBS -l jobfs=8GB"]


def test_a_line_that_no_shell_takes_is_refused_with_its_number(converted):
    with pytest.raises(UsageError, match=r"line 4: nsw does not see what .*ncu starts"):
        converted("bash -c '\"/opt/ncu' -o x ./a\n")


def test_settings_belong_to_the_runs_behind_them(converted, tmp_path):
    lines = "export A=1\nnsys profile ./a\nexport A=2\nmodule load x\nnsys profile ./b\n"
    recipe, unknown = converted(lines)
    assert (recipe.app.command, recipe.app.env, recipe.app.setup, unknown) == ("./a", {"A": "1"}, [], [])
    script = tmp_path / "job.sh"
    second = convert(HEAD + lines, script, site=None, sites="s", recipe="r").recipes[1][1]
    assert "A: '2'" in second
    assert "- module load x" in second
    _, unknown = converted("nsys profile ./a\nexport A=2\nncu ./a\n")
    assert unknown == ["export A=...: it comes between runs of one program: nsw does it before all of them"]


def test_two_containers_are_two_recipes(tmp_path):
    lines = "docker run --gpus all x/y:1 nsys profile ./a\ndocker run x/y:1 nsys profile ./a\n"
    made = convert(HEAD + lines, tmp_path / "job.sh", site=None, sites="s", recipe="r")
    assert ["gpus: true" in text for _, text in made.recipes] == [True, False]


def test_one_process_without_a_launcher_gets_the_cpus_of_all(converted):
    recipe, unknown = converted("nsys profile ./a\n", head="#!/bin/bash\n#SBATCH --ntasks=8 -c 2 -t 10\n")
    assert (recipe.resources.cpus_per_task, recipe.app.launcher.kind, unknown) == (16, "none", [])


def test_long_options_of_aprun_are_no_program(converted):
    recipe, _ = converted("aprun --env A=b -n 4 -N 2 -F share --cc depth nsys profile ./a 1\n")
    assert recipe.app.command == "./a 1"
    assert (recipe.app.launcher.processes, recipe.app.launcher.options) == (
        4, ["--env", "A=b", "-F", "share", "--cc", "depth"],
    )  # fmt: skip


def test_a_collection_of_vtune_s_events_is_named(converted):
    recipe, unknown = converted("vtune -collect-with runsa -knob event-config=A,B -data-limit 0 -- ./a 1\n")
    assert (recipe.app.command, recipe.passes[0].options) == ("./a 1", ["-data-limit", "0"])
    assert [line.partition(": nsw collects")[0] for line in unknown] == [
        "-collect-with runsa", "-knob event-config=A,B",
    ]  # fmt: skip


def test_what_nsys_traces_is_kept_as_far_as_it_is_known(converted):
    recipe, unknown = converted("nsys profile --trace cuda,python-gil ./a\n")
    assert recipe.passes[0].trace == ["cuda"]
    assert unknown == ["--trace python-gil: nsw does not know what this traces"]


@pytest.mark.parametrize(
    ("head", "line", "gpus"),
    [
        ("#SBATCH --gres=gpu:1g.10gb:1", "", 1), ("#SBATCH --gpus 2", "", 2), ("#SBATCH --gpus=h100-47", "", 1),
        ("#SBATCH --gres=gpu:v100:2,nvme:100", "", 2), ("#SBATCH --gpus-per-task=a100:1 -n 4", "srun", 4),
        ("#SBATCH --gpus-per-node=2 -N 2", "srun", 4), ("#SBATCH -p x", "srun --gres=gpu:2", 2),
        ('#BSUB -gpu "num=1:mode=exclusive_process"', "", 1), ('#BSUB -R "rusage[ngpus_physical=2]"', "", 2),
        ("#BSUB -nnodes 1", "jsrun -n 2 -a 1 -g 3", 6), ("#PBS -l select=2:ncpus=8:ngpus=4", "mpiexec -n 8", 8),
        ("#PBS -l nodes=1:ppn=4:gpus=2", "", 2), ("#PBS -l ngpus=2", "", 2), ("#COBALT --attrs fs=home:ngpus=2", "", 2),
        ("#$ -l gpu=1,h_rt=600", "", 1),
    ],
)  # fmt: skip
def test_gpus_are_counted_in_every_spelling(converted, head, line, gpus):
    recipe, _ = converted(f"{line} nsys profile ./a\n", head=f"#!/bin/bash\n{head}\n")
    assert recipe.resources.gpus == gpus


@pytest.mark.parametrize(
    ("line", "container", "launcher"),
    [
        ("apptainer exec --nv -B /d:/e /x/i.sif nsys profile ./a", {"runtime": "apptainer", "image": "/x/i.sif", "gpus": True,
         "mounts": ["/d:/e"]}, "none"),
        ("nsys profile singularity exec --nv --pwd /w /x/i.sif ./a", {"runtime": "singularity", "image": "/x/i.sif",
         "gpus": True, "profiler": "outside"}, "none"),
        ("docker run --rm -it --gpus all -v /d:/d -e A=b --ipc host --cap-add=SYS_ADMIN nvcr.io/x:1 nsys profile ./a",
         {"runtime": "docker", "image": "nvcr.io/x:1", "gpus": True, "mounts": ["/d:/d"], "env": {"A": "b"},
          "options": ["--ipc", "host", "--cap-add=SYS_ADMIN"]}, "none"),
        ("srun shifter --image=docker:x/y:1 nsys profile ./a", {"runtime": "shifter", "image": "docker:x/y:1"}, "srun"),
        ("srun sarus run --mount=type=bind,source=/d,destination=/e x/y:1 nsys profile ./a", {"runtime": "sarus",
         "image": "x/y:1", "mounts": ["/d:/e"]}, "srun"),
        ("ch-run -b /d:/e /img -- nsys profile ./a", {"runtime": "charliecloud", "image": "/img", "mounts": ["/d:/e"]},
         "none"),
        ("srun --container-image=/home/$USER/i.sqsh --container-mounts $D:/d --container-workdir=/w -l nsys profile ./a",
         {"runtime": "pyxis", "image": "/home/$USER/i.sqsh", "mounts": ["$D:/d"]}, "srun"),
        ("cd $D/x\napptainer exec --nv i.sif nsys profile ./a", {"runtime": "apptainer", "image": "$D/x/i.sif", "gpus": True},
         "none"),
        ("srun --container-image /i.sqsh --container-mounts=/d:/d,/e:/e nsys profile ./a", {"runtime": "pyxis",
         "image": "/i.sqsh", "mounts": ["/d:/d", "/e:/e"]}, "srun"),
    ],
)  # fmt: skip
def test_the_profiler_is_found_inside_a_container(converted, line, container, launcher):
    recipe, _ = converted(f"{line}\n")
    assert recipe.app.container.model_dump(exclude_unset=True) == container
    folder = 'cd "$D"/x && ' if "$D/x" in line else "cd /w && " if "/w" in line else ""
    assert recipe.app.command == f"{folder}./a"
    assert recipe.app.launcher.kind == launcher


def test_arrays_dependencies_and_components_of_a_job_are_named(converted):
    head = "#!/bin/bash\n#SBATCH --gpus=1 -a 1-3 -d afterok:1\n#SBATCH hetjob\n#SBATCH --gpus=8\n"
    recipe, unknown = converted("nsys profile ./a $SLURM_ARRAY_TASK_ID\n", head=head)
    assert recipe.resources.gpus == 1
    assert "NSW_FILL_IN" in recipe.app.command
    for text in ("-a 1-3", "-d afterok:1", "heterogeneous", "index of an array job"):
        assert any(text in line for line in unknown), text


@pytest.mark.parametrize("index", ["SLURM_ARRAY_TASK_ID", "$SLURM_ARRAY_TASK_ID", "${SLURM_ARRAY_TASK_ID:-0}"])
def test_the_index_of_an_array_that_a_variable_is_computed_from_is_named(converted, index):
    """nsw's own arrays have other indices, so that the variable would be another, and nobody would know."""
    recipe, unknown = converted(f"N=$(({index} * 10))\nnsys profile ./a $N\n")
    (setup,) = recipe.app.setup
    assert "NSW_FILL_IN" in setup
    assert "ARRAY_TASK_ID" not in setup
    assert unknown == [f"{index}: the index of an array job: fill it in in app.setup"]


def test_what_salloc_asks_for_is_the_jobs(converted):
    line = "salloc -N 2 --gpus-per-node=4 --time 30 -p gpu srun nsys profile ./a\n"
    recipe, unknown = converted(line, head="#!/bin/bash\n")
    assert (recipe.app.command, recipe.app.launcher.kind, unknown) == ("./a", "srun", [])
    assert (recipe.resources.nodes, recipe.resources.gpus) == (2, 8)


def test_what_a_second_salloc_asks_for_is_named(converted):
    lines = "salloc -N 2 srun nsys profile ./a\nsalloc -N 4 srun nsys profile ./a\n"
    recipe, unknown = converted(lines, head="#!/bin/bash\n")
    assert recipe.resources.nodes == 2
    assert "#SBATCH -N 4: the recipe asks for what the first salloc does" in unknown


def test_a_heterogeneous_job_is_the_component_that_is_profiled(converted):
    head = "#!/bin/bash\n#SBATCH -N 2 -t 9\n#SBATCH hetjob\n#SBATCH -N 1 -n 2 --gpus=2 -t 10\n"
    recipe, unknown = converted("srun --het-group=0 ./b : --het-group=1 nsys profile ./a\n", head=head)
    assert (recipe.app.command, recipe.resources.nodes, recipe.resources.gpus) == ("./a", 1, 2)
    assert (recipe.app.launcher.processes, recipe.app.launcher.options) == (2, [])
    assert [line.partition(":")[0] for line in unknown] == ["#SBATCH -N 2 -t 9", "srun ... "]
    _, unknown = converted("srun --het-group 0,1 nsys profile ./a\n", head=head)
    assert "srun --het-group=0,1: nsw's job is component 0 alone" in unknown


def test_sequences_of_a_loop_are_a_matrix_and_unknown_ones_are_named(converted):
    recipe, _ = converted("for n in $(seq 2 4); do nsys profile ./a $n; done\n")
    assert recipe.matrix.parameters["n"] == [2, 3, 4]
    recipe, _ = converted("for n in $(ls); do nsys profile ./a $n; done\n")
    assert "NSW_FILL_IN" in recipe.app.command


def test_the_folder_of_the_submission_is_the_script_s(converted, tmp_path):
    recipe, _ = converted("nsys profile python $SLURM_SUBMIT_DIR/a.py\n")
    assert recipe.app.command == f"python {tmp_path}/a.py"


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("D=$(pwd)\nnsys profile ./a $D/x `pwd`", "./a {0}/x {0}"),
        ("cd /w\nD=$(pwd)\ncd b\nnsys profile ./a $D/x $PWD", "cd /w/b && ./a /w/x /w/b"),
        ("W=$(pwd)\ncd ../..\ncd $W\nnsys profile ./a", "./a"),
        ("cd $SLURM_SUBMIT_DIR/b\nnsys profile ./a", "cd {0}/b && ./a"),
        ('cd ${PBS_O_WORKDIR:-"."}\nnsys profile ./a', "./a"),
        ("nsys profile ./a ${SLURM_SUBMIT_DIR:-$PWD}", "./a {0}"),
        ("(cd /w && true)\nnsys profile ./a $PWD", "./a {0}"),
        ("cd b\nnsys profile ./a", "cd {0}/b && ./a"),
        ("nsys profile python ../a.py $N < ../in", "python {0}/../a.py $N < {0}/../in"),
        ("cd /w\nnsys profile ../a", "cd /w && ../a"),
        ("vtune -collect hotspots -app-working-dir /w -- ../a", "../a"),
        ("cd /w\ncd /v\ncd -\nnsys profile ./a", "cd /w && ./a"),
        ("cd $(mktemp -d)\nnsys profile ./a $PWD", './a "${{NSW_FILL_IN:?line 5 of job.sh: write here what stands there}}"'),
    ],
)  # fmt: skip
def test_the_folder_of_a_command_is_followed(converted, tmp_path, line, command):
    assert converted(f"{line}\n")[0].app.command == command.format(tmp_path)


def test_folders_of_the_submission_in_a_container_and_in_variables_are_the_script_s(converted, tmp_path):
    recipe, _ = converted('export D=$(pwd)/d\ndocker run -v "$(pwd):/w" x/y:1 nsys profile ./a\n')
    assert recipe.app.container.mounts == [f"{tmp_path}:/w"]
    assert recipe.app.env == {"D": f"{tmp_path}/d"}


def test_the_folder_that_the_script_is_in_is_known(converted, tmp_path):
    line = 'D="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\nE=$(dirname "$0")\nnsys profile ./a $D/x "$E"\n'
    assert converted(line)[0].app.command == f"./a {tmp_path}/x {tmp_path}"


def test_a_program_that_eval_starts_without_a_profiler_is_a_baseline(converted):
    recipe, _ = converted("C='srun -n 1 ./a 1'\neval $C\n")
    assert (recipe.app.command, recipe.passes[0].kind) == ("./a 1", "baseline")


def test_a_mapping_of_mpirun_says_how_many_processes_a_node_has(converted):
    head = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH -t 10\n"
    recipe, _ = converted("mpirun -map-by ppr:3:node:PE=4 nsys profile ./a\n", head=head)
    assert (recipe.app.launcher.processes, recipe.resources.nodes, recipe.resources.cpus_per_task) == (6, 2, 4)


def test_an_image_beside_the_script_is_named_by_its_whole_path(converted, tmp_path):
    recipe, _ = converted("apptainer exec --nv i.sif nsys profile ./a\n")
    assert recipe.app.container.image == f"{tmp_path}/i.sif"


def test_settings_have_the_values_of_the_script_s_variables_and_its_folder(converted, tmp_path):
    lines = (
        'D="$(cd "$(dirname "$0")" && pwd)"\nexport A=$PWD/x:$A B="$D y"\ncd sub\nexport P=$PWD/q:$P\nN=$(./f)\n'
        "export C=$D/$N\nnsys profile ./a\n"
    )
    assert converted(lines)[0].app.setup == [
        f"D={tmp_path}", f"export A={tmp_path}/x:\"$A\" B={tmp_path}' y'", f'export P={tmp_path}/sub/q:"$P"', "N=$(./f)",
        "export C=$D/$N",
    ]  # fmt: skip


def test_a_file_is_sourced_in_the_folder_that_the_script_changed_to(converted):
    recipe, unknown = converted("cd $W/x\nsource .venv/bin/activate now\nnsys profile ./a\n")
    assert recipe.app.setup == ['source "$W"/x/.venv/bin/activate now']
    assert not unknown


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("N=4\nnsys profile ./a $((N * (2 + 1) - ${N} / 2)) $((2 ** N))", "./a 10 16"),
        ("P=$(which python3)\nnsys profile $P t.py", "$(which python3) t.py"),
        ("nsys profile ./a `command -v g++`", "./a `command -v g++`"),
        ("J=${SLURM_JOB_ID:-x}\nN=4\nnsys profile ./${D:-b_${J}_$N}/a", './"${D:-b_${SLURM_JOB_ID:-x}_4}"/a'),
    ],
)
def test_what_is_the_same_whenever_it_is_computed_is_kept(converted, line, command):
    recipe, unknown = converted(f"{line}\n")
    assert recipe.app.command == command
    assert not unknown


def test_the_arguments_of_the_caller_are_parameters(converted):
    lines = (
        'N=${1:?size}\nexport M=m$2\nshift 2\nD=/d/$1\nexport O=$D:$PATH\nnsys profile -o $N ./a $N ${2} "${3:-z}"\n'
    )
    recipe, unknown = converted(lines)
    assert recipe.app.command == 'export O=/d/{{ arg3 }}:"$PATH"; ./a {{ arg1 }} {{ arg4 }} z'
    assert (recipe.app.env, recipe.app.setup) == ({"M": "m{{ arg2 }}"}, [])
    assert recipe.matrix.parameters == {f"arg{n}": [f"${n}"] for n in (1, 2, 3, 4)}
    assert [line.partition(":")[0] for line in unknown] == ["$1", "$2", "$3", "$4"]


def test_variables_that_the_job_computes_are_set_where_it_starts(converted):
    lines = (
        'M=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)\nexport MASTER_ADDR=$M\n'
        'N=`wc -l < $PBS_NODEFILE`\nR=4\nW=$((N * R))\nunused=$(date)\nnsys profile ./a "$M:29500" $W\n'
    )
    recipe, unknown = converted(lines)
    assert recipe.app.command == './a "$M":29500 $W'
    assert recipe.app.setup == [
        'export M=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)', 'export MASTER_ADDR="$M"',
        "export N=`wc -l < $PBS_NODEFILE`", "R=4", "export W=$((N * R))",
    ]  # fmt: skip
    assert not unknown


@pytest.mark.parametrize(
    "value",
    ["$(cat nodes.txt)", "$(cat hosts)", "$(wc -l < hosts)", "$(ls)", "$(./f)", "$(echo *)", "$(date", "x$1$(date)"],
)
def test_variables_that_depend_on_a_file_or_a_caller_must_be_filled_in(converted, value):
    if value == "$(date":
        with pytest.raises(UsageError):
            converted(f"N={value}\nnsys profile ./a $N\n")
    else:
        assert "NSW_FILL_IN" in converted(f"N={value}\nnsys profile ./a $N\n")[0].app.command


@pytest.mark.parametrize("test", ['[ -n "$1" ] && N=$1', '[ -z "$1" ] || N=$1'])
def test_a_value_behind_a_test_is_that_of_before(converted, test):
    recipe, unknown = converted(f"N=4\n{test}\nnsys profile ./a $N\n")
    assert recipe.app.command == "./a 4"
    assert "N=$1: a condition: not carried over" in unknown


def test_a_profiled_command_may_decide_of_a_condition(converted):
    recipe, unknown = converted("if ! srun nsys profile ./a; then echo bad; fi\nif srun ./b; then echo x; fi\n")
    assert recipe.app.command == "./a"
    assert unknown[0].endswith("nsw counts each run in it once")
    recipe, _ = converted('if [ "$M" == ncu ]; then nsys profile ./a; elif test $M = nsys; then nsys profile ./a; fi\n')
    assert [one.kind for one in recipe.passes] == ["timeline", "timeline"]


def test_a_loop_over_an_argument_is_a_parameter_and_a_variable_of_the_job_stands_before_the_program(converted):
    recipe, unknown = converted('L=$1\nfor n in $L; do D="$X/$n" A=$n srun nsys profile ./a; done\n')
    assert (recipe.app.command, recipe.app.env) == ('env D="$X"/{{ n }} ./a', {"A": "{{ n }}"})
    assert recipe.matrix.parameters == {"n": ["$1"]}
    assert unknown == ["$1: its caller gives it: write its value in matrix.n, or `--set n=VALUE`"]


def test_an_argument_in_what_only_the_shell_knows_is_filled_in_in_the_setup(converted):
    recipe, unknown = converted("export D=$(basename $1):$PATH\nnsys profile ./a\n")
    assert recipe.app.setup == ["export D=$(basename ${NSW_FILL_IN:?line 4}):$PATH"]
    assert unknown == ["$1: the caller gives it: fill it in in app.setup"]


def test_settings_with_a_loop_s_variable_are_before_the_program(converted):
    lines = "for n in 1 2; do\n  export T=$n P=/x/$n:$PATH\n  mkdir -p /o/$n\n  nsys profile ./a\ndone\n"
    recipe, unknown = converted(lines)
    assert recipe.app.command == 'export T={{ n }} P=/x/{{ n }}:"$PATH"; mkdir -p /o/{{ n }}; ./a'
    assert (recipe.matrix.parameters, unknown) == ({"n": [1, 2]}, [])


@pytest.mark.parametrize(
    ("lines", "command"),
    [
        ("set -- x y\nnsys profile ./a $2", "./a y"),
        ("f() { nsys profile ./a $1; }\nf $2", "./a {{ arg2 }}"),
        ("f() { nsys profile ./a $1; }\nx=$(f 1)", './a "${NSW_FILL_IN:?line 4 of job.sh: write here what stands there}"'),
        ('M="1 2"\nset -- $M $(ls)\nnsys profile ./a $1', './a "${NSW_FILL_IN:?line 6 of job.sh: write here what stands there}"'),
        ('while [ -n "$1" ]; do nsys profile ./a $1; shift; done', './a "${NSW_FILL_IN:?line 4 of job.sh: write here what stands there}"'),
    ],
)  # fmt: skip
def test_arguments_are_those_that_the_command_has(converted, lines, command):
    assert converted(f"{lines}\n")[0].app.command == command


@pytest.mark.parametrize("value", ["2#11", "M * 2", "N ** -1", "N ** 32", "7 / 2", "$(nproc) * 2", "N++", "010 + 1"])
def test_other_arithmetic_is_computed_by_the_job(converted, value):
    recipe, unknown = converted(f"N=4\nM=1+1\nnsys profile ./a $(({value}))\n")
    name, _, text = recipe.app.setup[-1].removeprefix("export ").partition("=")
    assert (recipe.app.command, text, unknown) == (f"./a ${name}", f"$(({value}))", [])


def test_what_starts_the_launcher_of_a_profiled_command_is_named(converted):
    recipe, unknown = converted("clean_env A=1 mpirun -np 4 nsys profile ./a\n")
    assert (recipe.app.command, recipe.app.launcher.kind, recipe.app.launcher.processes) == ("./a", "mpirun", 4)
    assert recipe.app.env == {"A": "1"}
    assert unknown[0].startswith("clean_env: ")


def test_a_variable_of_one_command_may_be_a_loop_s(converted):
    recipe, unknown = converted("for n in 1 2; do SIZE=s$n srun nsys profile ./a; done\n")
    assert recipe.app.env == {"SIZE": "s{{ n }}"}
    assert recipe.matrix.parameters == {"n": [1, 2]}
    assert not unknown


def test_variables_of_a_compiler_are_kept_and_computed_ones_named(converted):
    recipe, unknown = converted("FLAGS='-O2 -g' CC=$(./find) make all\nnsys profile ./a\n")
    assert recipe.app.build.command == "FLAGS='-O2 -g' CC=\"${NSW_FILL_IN:?line 4}\" make all"
    assert unknown == ["$(./find): the output of a command: fill it in in app.build"]


def test_a_process_of_a_launcher_is_not_started_again_to_replay(converted):
    recipe, unknown = converted("srun -n 2 ncu --replay-mode application ./a\n")
    assert recipe.passes[0].replay == "kernel"
    assert unknown[0].startswith("--replay-mode application: ")
    for line in ("ncu", "srun ncu"):
        recipe, unknown = converted(f"{line} --replay-mode application ./a\n")
        assert (recipe.passes[0].replay, unknown) == ("application", [])


def test_gpu_analyses_of_vtune_are_passes(converted):
    recipe, unknown = converted("vtune -collect gpu-hotspots -knob a=b -r r -- ./a 1\n")
    assert (recipe.app.command, recipe.passes[0].analysis, recipe.passes[0].knobs) == (
        "./a 1",
        "gpu-hotspots",
        {"a": "b"},
    )
    assert not unknown


def test_an_analysis_that_no_pass_does_leaves_the_program_alone(converted):
    recipe, unknown = converted("vtune -collect io -knob a=b -- ./a 1\n")
    assert (recipe.app.command, recipe.passes[0].kind) == ("./a 1", "baseline")
    assert unknown[0].startswith("-collect io: ")


def test_the_environment_of_an_lsf_job_is_named(converted):
    head = '#!/bin/bash\n#BSUB -gpu num=1\n#BSUB -env "all"\n'
    recipe, unknown = converted("nsys profile ./a\n", head=head)
    assert recipe.resources.extra == []
    assert unknown[0].startswith("-env all: ")


def test_commands_with_other_variables_are_recipes_of_their_own(tmp_path):
    script = tmp_path / "job.sh"
    text = f"{HEAD}A=1 srun nsys profile ./a\nA=2 srun nsys profile ./a\nA=2 srun ./a\n"
    made = convert(text, script, site=None, sites="sites.yaml", recipe="recipe.yaml")
    assert [re.findall(r"A: '\d'|baseline", recipe) for _, recipe in made.recipes] == [
        ["A: '1'"],
        ["A: '2'", "baseline"],
    ]


@pytest.mark.parametrize("option", ["-n $n", "-n$n", "--ntasks=$n", "--ntasks $n"])
def test_the_processes_of_a_launcher_may_be_a_loop_s(converted, option):
    recipe, unknown = converted(f"for n in 1 2 4; do srun {option} --gpus-per-task=1 nsys profile ./a; done\n")
    assert (recipe.app.launcher.processes, recipe.app.command) == ("{{ n }}", "./a")
    assert recipe.matrix.parameters == {"n": [1, 2, 4]}
    assert not unknown


def test_processes_that_are_no_numbers_are_named(converted):
    recipe, unknown = converted("for n in 0 x; do srun -n $n nsys profile ./a $n; done\n")
    assert recipe.app.launcher.processes == 1
    assert unknown == ["srun -n: the number is computed: nsw takes 1"]


_CASE = (
    'case $M in\n nsys|s*) P="nsys profile";;\n none) ;;\n "ncu") P="ncu --set full";;\n *) P=;;\nesac\nsrun $P ./a\n'
)
_LAUNCH = 'f() {\n local m=$1; shift\n if [ $m = p ]; then nsys profile "$@"; else "$@"; fi\n}\n'


@pytest.mark.parametrize(
    ("lines", "command", "passes"),
    [
        (f"M=ncu\n{_CASE}", "./a", ["counters"]), (_CASE, "./a", ["timeline", "counters"]),
        (f"M=${{1:-none}}\n{_CASE}", "./a", ["timeline", "counters"]), (f"M=off\n{_CASE}", "./a", ["timeline", "counters"]),
        ('P=1\nif [[ $P == 1 && -z "" ]]; then nsys profile ./a; else ./b; fi\n', "./a", ["timeline"]),
        ("P=0\nif (( P > 1 )) || ! [ $P -eq 0 ]; then ./b; else nsys profile ./a; fi\n", "./a", ["timeline"]),
        ("P=1\n[ $P = 1 ] && Q='nsys profile'\n[ $P = 1 ] || Q=ncu\n$Q ./a\n", "./a", ["timeline"]),
        ("P=0\nwhile [ $# -gt 0 ]; do P=1; shift; done\nif [ $P = 1 ]; then nsys profile ./a; else ./a; fi\n", "./a",
         ["timeline", "baseline"]),
        (f"{_LAUNCH}f p ./a 1\nf q ./a 1\n", "./a 1", ["timeline", "baseline"]),
        ("for p in 'nsys profile' ncu; do srun $p ./a; done\n", "./a", ["timeline", "counters"]),
        ("for t in a b; do case $t in a) nsys profile ./a;; *) ncu ./a;; esac; done\n", "./a", ["timeline", "counters"]),
        ('for x in 1 2; do A="$A -$x"; B+=" $x"; done\nnsys profile ./a $B\n', "./a 1 2", ["timeline"]),
        ("i=3\nuntil [ $i -le 1 ]; do i=$((i-1)); [ $i = 2 ] && continue; nsys profile ./a $i; done\n", "./a 1", ["timeline"]),
        ("nsys profile ./a\nexit\nnsys profile ./b\n", "./a", ["timeline"]),
        ("case a in a) nsys profile ./a;& b) ncu ./a;; esac\n", "./a", ["timeline", "counters"]),
        ("srun ./wrap.sh ./a\n", "./a", ["timeline", "counters"]),
    ],
)  # fmt: skip
def test_the_script_s_own_values_decide_and_those_of_its_caller_leave_all_branches(converted, lines, command, passes):
    recipe, _ = converted(lines, wrap=f'{_CASE.replace("srun ", "exec ").replace("./a", "").strip()} "$@"\n')
    assert (recipe.app.command, [one.kind for one in recipe.passes]) == (command, passes)


def test_a_profiler_that_a_variable_has_on_one_rank_is_a_pass_of_that_rank(converted):
    for choice in (
        'if [ $RANK -eq 0 ]; then P="nsys profile"; else P=; fi',
        'case $RANK in 0) P="nsys profile";; esac',
    ):
        recipe, unknown = converted("mpirun -np 2 ./wrap.sh ./a\n", wrap=f'{choice}\n$P "$@"\n')
        assert (recipe.app.command, recipe.passes[0].ranks, unknown) == ("./a", "first", [])


def test_the_number_of_processes_may_be_an_argument(converted):
    recipe, unknown = converted("srun -n $1 nsys profile ./a\n")
    assert (recipe.app.launcher.processes, recipe.matrix.parameters) == ("{{ arg1 }}", {"arg1": ["$1"]})
    assert unknown == ["$1: its caller gives it: write its value in matrix.arg1, or `--set arg1=VALUE`"]


def test_folders_are_followed_through_groups_branches_and_temporary_ones(converted, tmp_path):
    recipe, _ = converted("T=$(mktemp -d)\ncd $T\nnsys profile ./a\n")
    assert (recipe.app.command, recipe.app.setup) == ("cd $T && ./a", ["export T=$(mktemp -d)"])
    for lines in (
        "(cd b; nsys profile ./a)\n",
        "if [ -d b ]; then cd b; nsys profile ./a; fi",
        "pushd c; popd; pushd b; nsys profile ./a",
    ):
        assert converted(f"{lines}\n")[0].app.command == f"cd {tmp_path}/b && ./a"
    assert converted("(cd b)\nnsys profile ./a\n")[0].app.command == "./a"


def test_processes_share_gpus_where_the_script_lets_them(converted):
    assert converted("srun -n 4 nsys profile ./a\n")[0].app.launcher.share_gpus
    assert not converted("srun -n 4 nsys profile ./a\n", head="#!/bin/bash\n#SBATCH --gpus=4\n")[
        0
    ].app.launcher.share_gpus


_JOB = "#SBATCH -t 10\nexport V=\\$HOME\nsrun -n $N nsys profile ./a\n"


@pytest.mark.parametrize(
    "lines",
    [
        f"sbatch -A me <<EOF\n{_JOB}EOF\n", f"cat > j.sh <<EOF\n{_JOB}EOF\nID=$(sbatch -A me j.sh 1)\n",
        f'echo "{_JOB}" | sbatch -A me\n', f"echo '#!/bin/sh' > j\necho \"{_JOB}\" >> j\nsbatch -A me j\n",
    ],
)  # fmt: skip
def test_a_job_that_a_script_writes_and_submits_is_the_recipe(tmp_path, lines):
    made = convert(f"N=2\n{lines}", tmp_path / "job.sh", site=None, sites="s", recipe="r")
    recipe = made.recipes[0][1]
    assert "account: me" in made.site
    assert "command: ./a #" in recipe
    assert "processes: 2" in recipe
    assert "time: 9m" in recipe
    assert "sbatch" in recipe.partition("# Not understood")[2]


@pytest.mark.parametrize("line", ['foo "nsys profile ./a"', "N=nsys\nfoo $N ./a", 'C="$(cat nsys)"\nbash -c "$C"'])
def test_a_profiler_that_is_not_found_is_named_with_its_line(converted, line):
    with pytest.raises(UsageError, match=r"line \d: nsw does not see what .* starts"):
        converted(f"{line}\n")


@pytest.mark.parametrize(
    ("lines", "command"),
    [
        ('A="$@"\nset -- 1 "2 3"\nB="$*"\nnsys profile ./a $B', "./a 1 2 3"),
        ('C=$(cat <<EOF\nexport X=\\$Y\nnsys profile ./a\nEOF\n)\nsrun bash -c "$C"', "export X=$Y; ./a"),
        ("ssh -p 22 n1 'cd /x && nsys profile ./a 1'", "cd /x; ./a 1"),
        ("W=1\ncat > w.sh <<EOF\nexport V=$W\nnsys profile \\$@\nEOF\nsrun bash w.sh ./a", "export V=1; ./a"),
        ("rocprof --trace-start off --stats ./a 1", "./a 1"),
    ],
)  # fmt: skip
def test_texts_that_a_script_makes_are_read_with_its_values(converted, lines, command):
    assert converted(f"{lines}\n")[0].app.command == command


def test_torchrun_starts_its_processes_on_each_of_its_nodes(converted):
    line = "nsys profile torchrun --nnodes={} --nproc_per_node=4 a.py\n"
    assert converted(line.format(2))[0].app.launcher.processes == 8
    assert converted(line.format("$SLURM_NNODES"), head="#!/bin/bash\n#SBATCH -N 3\n")[0].app.launcher.processes == 12


def test_the_image_of_shifter_may_be_a_directive_s(converted):
    recipe, unknown = converted("srun shifter nsys profile ./a\n", head="#!/bin/bash\n#SBATCH -t 9 --image=x/y:1\n")
    assert (recipe.app.container.image, unknown) == ("x/y:1", [])


@pytest.mark.parametrize("metrics", ["achieved_occupancy,no_such_metric", "achieved_occupancy, no_such_metric"])
def test_metrics_of_nvprof_that_no_recipe_can_name_are_named(converted, metrics):
    recipe, _ = converted(f"nvprof --metrics {metrics} ./a\n")
    assert recipe.passes[0].metrics == ["achieved_occupancy"]


def test_the_home_folder_in_an_exported_value_is_the_job_s(converted):
    assert converted("export T=~/tmp\nnsys profile ./a\n")[0].app.setup == ["export T=~/tmp"]


@pytest.mark.parametrize(
    ("shell", "folder"),
    [
        ('$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)', "{}/.."),
        ('$(cd -- "$(dirname -- "$0")" &> /dev/null && pwd -P)', "{}"),
        ('$(dirname "$(readlink -f "$0")")', "{}"),
        ('$(dirname "$(dirname "$0")")', "{}/.."),
        ('$(dirname "$(cd "$(dirname "$0")/.." && pwd)")', "{}/../.."),
        ("$(realpath /x/y)", "/x/y"),
        ("$(dirname /x/y)", "/x"),
        ("`dirname $0`", "{}"),
    ],
)
def test_folders_that_a_script_prints_are_known(converted, tmp_path, shell, folder):
    recipe, unknown = converted(f'D="{shell}"\ncd -- "$D"\nnsys profile a $(basename /x/y.in .in)\n')
    command = "a y" if folder == "{}" else f"cd {folder.format(tmp_path)} && a y"
    assert (recipe.app.command, unknown) == (command, [])


@pytest.mark.parametrize(
    ("test", "ranks"),
    [
        ('[ "$R" -eq 0 ]', "first"),
        ("[ 0 -eq $PMI_RANK ]", "first"),
        ("[ ${PMI_RANK:-0} -lt 2 ]", [0, 1]),
        ("(( PMI_RANK <= 2 ))", [0, 1, 2]),
        ("[ $PMI_RANK != 0 ]", "all"),
        ("[ $PMI_RANK -eq 1 ]", "all"),
    ],
)
def test_ranks_are_those_that_a_wrapper_profiles(converted, tmp_path, test, ranks):
    wrapper = f'R=$PMI_RANK\nif {test}; then nsys profile "$@"; else "$@"; fi\n'
    (tmp_path / "w.sh").write_text(wrapper)
    recipe, unknown = converted("mpirun -np 4 ./w.sh ./a\n")
    assert (recipe.app.command, recipe.passes[0].ranks, bool(unknown)) == ("./a", ranks, ranks == "all")


@pytest.mark.parametrize("step", ["N=$((N * 2))", "let N=N*2", "((N *= 2))", "let 'N = N * 2'"])
def test_a_counted_while_loop_is_a_matrix(converted, step):
    recipe, unknown = converted(f"N=1\nwhile [ $N -le 1000 ]; do\nnsys profile ./a $N\n{step}\ndone\n")
    assert (recipe.app.command, recipe.matrix.N[-1], unknown) == ("./a {{ N }}", 512, [])


def test_what_the_job_computes_in_a_command_is_computed_once(converted):
    recipe, unknown = converted(
        "nodes=( $(scontrol show hostnames $SLURM_JOB_NODELIST) )\nhead=${nodes[0]}\n"
        "ip=$(srun -N 1 -w $head hostname --ip-address)\nsrun nsys profile ./a $RANDOM $ip:29500 $(cat a.txt)\n"
    )
    names = [line.removeprefix("export ").partition("=")[0] for line in recipe.app.setup]
    assert names[:3] == ["nodes", "head", "ip"]
    assert recipe.app.command.startswith(f'./a ${names[3]} "$ip":29500 "${{NSW_FILL_IN')
    assert len(unknown) == 1


def test_a_mounted_folder_that_depends_on_where_the_profiler_is_is_named(converted):
    recipe, unknown = converted(
        "N=$(command -v nsys)\nD=$(echo $N | cut -d/ -f2)\napptainer exec -B $D i.sif $N profile a\n"
    )
    assert (recipe.app.setup, recipe.app.container.mounts) == ([], [])
    assert unknown[-1] == "-B $D: only the job knows its value"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("nvprof --metrics $(cat m.txt) ./a", "--metrics $(cat m.txt): only the job knows its value"),
        (
            "export W='nsys launch -t cuda'\nbash serve.sh",
            "export W=...: nsw does not see what it profiles: add a pass",
        ),
    ],
)
def test_a_profiler_of_which_part_is_not_known_is_named(converted, command, said):
    assert said in converted(f"{command}\n")[1]


def test_a_switch_that_nsw_does_not_know_takes_no_program(converted):
    assert converted("ncu --no-such-switch python3 a.py\n")[0].app.command == "python3 a.py"
    assert converted("nsys.exe profile -t cuda a\n")[0].passes[0].kind == "timeline"


def test_a_wrapper_is_in_its_own_folder(converted, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/w.sh").write_text('nsys profile python "$(dirname "$0")/a.py" "$@"\n')
    assert converted("srun bin/w.sh 1\n")[0].app.command == f"python {tmp_path}/bin/a.py 1"


def test_a_program_that_is_built_again_between_its_runs_is_of_two_recipes(tmp_path):
    lines = "nvcc -O0 m.cu -o a\nncu ./a\n./a\nnvcc -O3 m.cu -o a\nncu ./a\n"
    made = convert(lines, tmp_path / "job.sh", site=None, sites="sites.yaml", recipe="recipe.yaml")
    recipes = [yaml.safe_load(text) for _, text in made.recipes]
    builds = [recipe["app"]["build"]["command"] for recipe in recipes]
    assert builds == ["nvcc -O0 m.cu -o a", "nvcc -O3 m.cu -o a"]
    assert [[kind for one in recipe["passes"] for kind in one] for recipe in recipes] == [
        ["counters", "baseline"],
        ["counters"],
    ]


def test_a_setting_of_what_was_used_before_is_named(converted):
    _, unknown = converted("cd $HOME/x\nexport PATH=/a:$PATH\nexport HOME=/h OTHER=1\nnsys profile ./a\n")
    assert unknown == ["export HOME=...: lines before it use its value of before"]
