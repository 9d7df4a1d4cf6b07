"""oneDNN's tracing: its lines in a file of their own, the program as it was; with a real PyTorch where there is one."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nsw.profilers import onednn
from nsw.profilers.model import Request
from nsw.readers import read

PYTHON = os.environ.get("NSW_TORCH_PYTHON") or (sys.executable if importlib.util.find_spec("torch") else "")
NET = Path(__file__).parents[1] / "fixtures" / "onednn" / "convolution.py"
PROGRAM = 'printf "epoch 1 "; echo "onednn_verbose,v1,info,x"; echo loss; echo "mkldnn_verbose,exec,y" >&2; exit 7'


def run(place, *program, **how):
    done = onednn.profile(Request("", program, **how))
    return subprocess.run(done.command, cwd=place, capture_output=True, text=True, check=False, timeout=60)


def test_the_lines_go_to_a_file_and_the_program_is_as_it_was(tmp_path):
    done = run(tmp_path, "bash", "-c", PROGRAM)
    assert (done.returncode, done.stdout, done.stderr) == (7, "epoch 1 loss\n", "mkldnn_verbose,exec,y\n")
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"host.onednn.txt": "onednn_verbose,v1,info,x\n"}


@pytest.mark.parametrize(("analysis", "level"), [(None, "1"), ("exec", "1"), ("create", "2")])
def test_the_library_is_told_by_all_its_names(analysis, level, tmp_path):
    done = run(tmp_path, "bash", "-c", "echo $ONEDNN_VERBOSE $DNNL_VERBOSE $MKLDNN_VERBOSE", analysis=analysis)
    assert done.stdout == f"{level} {level} {level}\n"


def test_each_rank_has_a_file_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    run(tmp_path, "echo", "dnnl_verbose,info,DNNL v1.3.0", per_rank=True, rank_variable="RANK")
    assert [p.name for p in tmp_path.iterdir()] == ["host.rank3.onednn.txt"]


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("to", ["the first", "all"])
def test_a_signal_reaches_the_program_and_what_it_still_prints_is_kept(name, to, tmp_path):
    program = (
        f"import signal, sys, time\nend = []\nsignal.signal({int(name)}, lambda *_: end.append(1))\n"
        "print('ready', flush=True)\nwhile not end: time.sleep(0.01)\n"
        "print('onednn_verbose,last', flush=True); print('bye'); sys.exit(5)\n"
    )
    command = onednn.profile(Request("", (sys.executable, "-c", program))).command
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True) as started:
        assert started.stdout.readline() == "ready\n"
        os.killpg(started.pid, name) if to == "all" else started.send_signal(name)
        assert started.stdout.read() == "bye\n"
        code = started.wait(60)
        assert code == 5 or to == "all", "a signal to all may reach the wrapper last, after the program has ended"
    assert (tmp_path / "host.onednn.txt").read_text() == "onednn_verbose,last\n"


def test_what_it_does_not_know_is_said():
    assert "it does exec and create" in onednn.profile(Request("", ("x",), analysis="hotspots")).impossible
    assert "takes no options" in onednn.profile(Request("", ("x",), options=("-v",))).impossible


@pytest.mark.skipif(not PYTHON, reason="PyTorch is not installed (NSW_TORCH_PYTHON names a Python with it)")
def test_a_campaign_measures_the_primitives_of_a_net(tmp_path):
    (tmp_path / "recipe.yaml").write_text(f"""\
nsw: 1
name: net
resources: {{gpus: 0, time: 2m}}
app: {{command: ["{PYTHON}", "{NET}"], figures: {{loss: {{regex: 'loss ([\\d.]+)', unit: ''}}}}}}
passes: [baseline, host: {{tool: onednn}}]
""")
    env = os.environ | {"NSW_ROOT": str(tmp_path / "campaigns"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    nsw = [sys.executable, "-m", "nsw"]
    done = subprocess.run(
        [*nsw, "run", "recipe.yaml", "--site", "local"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    [log] = tmp_path.glob("campaigns/*/reports/*host*/host.onednn.txt")
    report = read(log)
    assert report.problems == []
    lines = [line.split(",") for line in log.read_text().splitlines() if ",exec," in line]
    assert sum(row["calls"] for row in report.tables["operators"]) == len(lines) > 0
    convolutions = [row for row in report.tables["operators"] if row["name"].startswith("convolution ")]
    printed = sum(float(line[-1]) for line in lines if "convolution" in line) * 1e6
    assert sum(row["self_cpu_ns"] for row in convolutions) == pytest.approx(printed)
    summary = subprocess.run(
        [*nsw, "summarize", "--json"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    figures = {figure["name"] for case in json.loads(summary.stdout)["cases"] for figure in case["figures"]}
    assert figures == {"loss"}, "the program's own output is what figures are looked for in"
