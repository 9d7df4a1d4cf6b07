"""A job script and the recipe made of it do the same, or each difference is named."""

import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from nsw.convert.from_script import convert

from . import contract
from .contract import Rendered, calls_of, compare_call, compare_directives, measured, split_program

SHARED = Path(__file__).parents[3] / "shared" / "corpus"
HERE = Path(__file__).parent / "scripts"


@dataclass(frozen=True)
class Example:
    """A script, the programs that it profiles (in the order of its recipes), and how it is called.

    `fills_in`: the recipe leaves the program to a person, since the script is given it.
    """

    script: Path
    programs: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    fills_in: bool = False
    parameters: tuple[tuple[str, str], ...] = ()

    def __str__(self):
        return self.script.stem


_SLURM, _OTHERS = SHARED / "jobs-slurm", SHARED / "jobs-pbs-cobalt-lsf"
_EPOCHS = "python pytorch_cifar10.py --device cpu --epochs"
CORPUS = [
    Example(_SLURM / "01-clima-ncu.sh", ("julia --project=. scripts/run.jl",), ("out",), ("scripts/gpu-guard.sh",)),
    Example(_SLURM / "04-cori-nsys.sh", ("./gem_main",)),
    Example(_SLURM / "06-apma-nvprof-nsys.sh", ("./a.out",)),
    Example(_SLURM / "07-kmeans-nsysnvprof.sh", ("./executable test 2 imagen.bmp",), ("-prof",)),
    Example(_SLURM / "11-ncar-nvprof.sh", ("./matrix_add.exe",)),
    Example(_SLURM / "12-exthnet-nsys.sh", ("./pinned5e.out 1000 1080",)),
    Example(_SLURM / "21-nersc-vtune.sh", ("./gppCustomComplex.ex.survey.tools.div.cmplx.fma.iw6 512 2 32768 20 0",),
            files=("Results_tools_1/folder",)),
    Example(_OTHERS / "05-hw5-stencil.sh", ("./stencil1D",)),
    Example(_OTHERS / "06-hw5-transpose.sh", ("./transpose",)),
    Example(_OTHERS / "08-polaris-seqpar.sh",
            ("python /home/hossainm/hpc_workshop_october_2024/sequence_parallelism_compute.py",)),
    Example(_OTHERS / "10-alcf-nsys-wrapper.sh", ("given --x 'a b'",), ("given", "--x", "a b"), fills_in=True),
    Example(_OTHERS / "11-alcf-ncu-wrapper.sh", ("given --x 'a b'",), ("given", "--x", "a b"), fills_in=True),
    Example(_OTHERS / "12-theta-aprun-aps.sh", (f"{_EPOCHS} 5", f"{_EPOCHS} 1")),
    Example(_OTHERS / "18-bsc-rank0-wrapper.sh", ("given --x 'a b'",), ("given", "--x", "a b"), fills_in=True),
]  # fmt: skip
OWN = [
    Example(HERE / "slurm.sh", ("./stencil --size 4096 'two words'",)),
    Example(HERE / "pbs.sh", ("./solver input.nml",), files=("input.txt",)),
    Example(HERE / "cobalt.sh", ("./model --steps 10", "python post.py")),
    Example(HERE / "lsf.sh", ("./app",)),
    Example(HERE / "local.sh", ("python train.py --lr 0.1",)),
]


@pytest.fixture(params=[*OWN, *CORPUS], ids=str)
def example(request):
    if not request.param.script.exists():
        pytest.skip("the collected job scripts are not here")
    return request.param


@pytest.fixture
def made(nsw, home, example):
    """What nsw made of the script, with its job scripts: the recipes pass `nsw plan`."""
    said = nsw("init", "--from-script", example.script)
    assert said.code == 0, said.err
    assert len(said.out.splitlines()) <= 24, "a screen"
    lines = convert(example.script.read_text(), example.script, site=None, sites="s", recipe="r").lines
    where = ["--sites", "sites.yaml", "-s", _site(home)] if (home / "sites.yaml").exists() else ["-s", "local"]
    scripts = []
    for number in range(1, len(example.programs) + 1):
        file = "recipe.yaml" if number == 1 else f"recipe-{number}.yaml"
        planned = nsw("plan", file, *where)
        assert planned.code == 0, planned.err
        scripts.append(Rendered(nsw("render", file, *where).out.partition("# ==== nsw-")[0]))
    assert not (home / f"recipe-{len(example.programs) + 1}.yaml").exists()
    return lines, scripts


@pytest.fixture(autouse=True)
def _machine(home, tmp_path, monkeypatch):
    """No sites file, profilers that are on PATH, and a Slurm that cannot be asked: another test's may run here."""
    (home / "sites.yaml").unlink()
    monkeypatch.delenv("NSW_SITES")
    folder = tmp_path / "tools"
    folder.mkdir()
    silent = "echo 'sbatch: fatal: Could not establish a configuration source' >&2; exit 1"
    for name, text in {"nsys": "", "ncu": "", "nvprof": "", "sbatch": silent}.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def _site(home):
    from nsw.site.load import read_sites

    (one,) = read_sites(home / "sites.yaml")
    return one.site.name


def test_commands_are_the_same(example, made, tmp_path):
    lines, scripts = made
    calls = measured(calls_of(example.script, tmp_path, arguments=example.arguments, files=example.files))
    assert calls, "the script profiles something"
    for program, script in zip(example.programs, scripts, strict=True):
        words = shlex.split(program)
        theirs = [call for call in calls if call.words[-len(words) :] == words]
        assert theirs
        ours = [run for run in script.runs if contract.profiler_of(run) is not None]
        if example.fills_in:
            assert all("NSW_FILL_IN" in word for run in ours for word in run[-2:-1])
            ours = [_filled(run, words) for run in ours]
            assert any("fill it in" in line.what for line in lines)
        ours = [run for run in ours if run[-len(words) :] == words or shlex.join(words) in run[-2]]
        assert len(ours) >= len(theirs) > 0
        for call, run in zip(theirs, ours, strict=False):
            before = compare_call(call, run, words, lines)
            assert "/nowhere" not in before


def _filled(run, words):
    """A run whose program a person has written into the recipe: bash -c LINE nsw."""
    at = next(at for at in range(len(run)) if run[at] == "bash" and "-c" in run[at : at + 4])
    return [*run[:at], *words]


def test_the_program_runs_in_the_same_folder(example, made, tmp_path):
    _, scripts = made
    calls = calls_of(example.script, tmp_path, arguments=example.arguments, files=example.files)
    folders = []
    for call in calls:
        if call.words[0] == "cd" and call.words[1] != str(tmp_path):
            folders = [call.words[1]]
        if measured([call]):
            break
    for program, script in zip(example.programs, scripts, strict=True):
        for run in script.runs if not example.fills_in else ():
            if shlex.join(shlex.split(program)) in " ".join(run):
                _, before = split_program(run, shlex.split(program))
                assert before == (f"cd {folders[0]} && " if folders else "")


def test_directives_are_the_same(example, made):
    lines, scripts = made
    theirs = Rendered(example.script.read_text()).directives
    if not theirs:
        return
    scheduler = {"#SBATCH": "slurm", "#PBS": "pbs", "#COBALT": "cobalt", "#BSUB": "lsf"}[theirs[0].split()[0]]
    for script in scripts:
        compare_directives(theirs, Rendered(script.last_job).directives, scheduler, lines)


def test_environment_and_set_up_are_the_same(example, made, tmp_path):
    lines, scripts = made
    calls = calls_of(example.script, tmp_path, arguments=example.arguments, files=example.files)
    for program, script in zip(example.programs, scripts, strict=True):
        words = shlex.split(program)
        at = next(at for at, call in enumerate(calls) if measured([call]) and call.words[-len(words) :] == words)
        file = tmp_path / "set-up"
        file.write_text(script.modules + script.set_up)
        *before, done = calls_of(file, tmp_path)
        assert done.exported == calls[at].exported
        theirs = [call for call in calls[:at] if call.words[0] in contract.SETTING and not _is_named(call, lines)]
        assert _single(call.words for call in before) == _single(call.words for call in theirs)


def _is_named(call, lines):
    """Whether a call is in a line that was not understood or is left out."""
    return any(
        line.first <= call.line <= line.last and (not line.is_understood or not line.does_more_than_print)
        for line in lines
    )


def _single(calls):
    """Each module that is loaded by itself."""
    return [
        words for call in calls for words in
        ([["module", "load", name] for name in call[2:]] if call[:2] == ["module", "load"] else [call])
    ]  # fmt: skip


def test_every_line_is_accounted_for(example):
    """Each command of the script is among the lines, by itself or by the block that it is in."""
    lines = convert(example.script.read_text(), example.script, site=None, sites="s", recipe="r").lines
    told = {number for line in lines for number in range(line.first, line.last + 1)}
    held = {number for number, line in _commands(example.script.read_text())}
    assert held <= told


def _commands(text):
    """Lines that hold a command: no comment, blank, continuation, or end of a block."""
    continued = False
    for number, line in enumerate(text.splitlines(), 1):
        word = line.strip()
        is_command = (
            word and not word.startswith("#") and not continued and word not in {"fi", "done", "}", ";;", "else", "do"}
        )
        continued = word.endswith("\\")
        if is_command:
            yield number, word


def test_bash_accepts_the_scripts(example):
    assert subprocess.run(["bash", "-n", example.script], check=False).returncode == 0
