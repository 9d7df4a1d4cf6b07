"""A campaign on a site behind a real sshd, from recipe to answer; its batch system is the fake Slurm."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import SITE_DATA

from .conftest import Server

FAKES = Path(__file__).parents[1] / "fakes" / "bin"
RECIPE = """
nsw: 1
name: far
app:
  command: sh prog.sh {{ n }}
  files: [prog.sh]
  figures: {speed: {regex: 'speed=(\\d+)', unit: 1/s}}
matrix: {n: [1, 2, 3]}
passes: [baseline]
resources: {gpus: 0, time: 10m}
"""
SETTINGS = {f"XDG_{kind}_HOME" for kind in ("CONFIG", "CACHE", "STATE")}  # of the tests, beside a home
SITES = """
nsw: 1
sites:
  cluster:
    scheduler: slurm
    transport: {kind: KIND, host: far, config: CONFIG}
    scratch: SCRATCH/$USER
    confirm_above: 100 node-hours
    limits: {lost_after: 20s}
"""


class Cluster:
    def __init__(self, folder: Path, server: Server, kind: str) -> None:
        self.work, self.server, self.kind = folder / "laptop", server, kind
        self.scratch = folder / "scratch"
        self.work.mkdir()
        (self.work / "recipe.yaml").write_text(RECIPE)
        (self.work / "prog.sh").write_text(f'echo "$1" >>{folder}/ran; sleep ${{SLOW:-0}}; echo speed=$1')
        text = SITES.replace("KIND", kind).replace("CONFIG", str(server.config)).replace("SCRATCH", str(self.scratch))
        (self.work / "sites.yaml").write_text(text)
        self.ran_file = folder / "ran"

    def start(self, *words: str, home: Path | None = None) -> subprocess.Popen:
        """On this machine, or on the one with that home folder, where the work is too."""
        env = dict(os.environ)
        if home is not None:
            env = {name: value for name, value in env.items() if name not in SETTINGS} | {"HOME": str(home)}
        return subprocess.Popen(
            [sys.executable, "-m", "nsw", *words], cwd=home or self.work, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
        )  # fmt: skip

    def nsw(self, *words: str, home: Path | None = None) -> subprocess.CompletedProcess:
        process = self.start(*words, home=home)
        out, err = process.communicate(timeout=240)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def run_words(self) -> tuple[str, ...]:
        return ("run", "recipe.yaml", "--site", "cluster", "--sites", "sites.yaml", "--yes")

    def ran(self) -> list[str]:
        return sorted(self.ran_file.read_text().split()) if self.ran_file.exists() else []


@pytest.fixture(params=["openssh", "ssh"])
def cluster(tmp_path, request):
    from .conftest import SSHD

    if SSHD is None or os.geteuid() != 0:
        pytest.skip("no sshd, or not root")
    state = tmp_path / "fake-slurm"
    state.mkdir()
    path = f"{FAKES}:/usr/local/bin:/usr/bin:/bin"
    env = f"PATH={path} NSW_FAKE_SLURM={state} NSW_FAKE_PYTHON={sys.executable}"
    more = f'ForceCommand echo Welcome; export {env}; exec /bin/bash --norc -c "$SSH_ORIGINAL_COMMAND"'
    server = Server(tmp_path / "sshd", more=more)
    server.start()
    yield Cluster(tmp_path, server, request.param)
    server.stop(sessions=True)


def test_a_recipe_runs_on_a_site_elsewhere_and_its_answer_is_here(cluster):
    done = cluster.nsw(*cluster.run_words())
    assert done.returncode == 0, done.stderr + done.stdout
    assert cluster.ran() == ["1", "2", "3"]
    (folder,) = (cluster.work / "campaigns").iterdir()
    assert {p.name for p in (folder / "reports").iterdir()} == {f"n-{n}.baseline.r1" for n in (1, 2, 3)}
    assert (folder / "reports/n-2.baseline.r1/stdout").read_text() == "speed=2\n"
    assert not (folder / "scratch").exists()
    (cluster.scratch / f"root/{folder.name}/runs/n-1.baseline.r1/attempt-1/x.ncu-rep").write_text("for the GUI")
    fetched = cluster.nsw("fetch", "n-1", "--root", "campaigns", "--yes")
    assert fetched.returncode == 0, fetched.stderr
    assert "11 B  n-1.baseline.r1/attempt-1/x.ncu-rep" in fetched.stderr
    assert (folder / "fetched/n-1.baseline.r1/x.ncu-rep").read_text() == "for the GUI"
    (cluster.scratch / f"root/{folder.name}/runs/n-1.baseline.r1/attempt-1/y.ncu-rep").write_bytes(b"y" * 300)
    with Ledger(folder / "campaign.db") as ledger:
        site = ledger.site()
        ledger.set_meta(SITE_DATA, site | {"limits": site["limits"] | {"download": "100B"}})
    none = cluster.nsw("fetch", "n-1", "--file", "*.other", "--root", "campaigns")
    assert "no file of these runs on the site matches *.other: `--file '*'` lists every file" in " ".join(
        none.stderr.split()
    )
    refused = cluster.nsw("fetch", "n-1", "--root", "campaigns")
    assert refused.returncode == 2
    assert "1 file, 300 B, more than the site's limits.download (100 B): there is no terminal" in refused.stderr
    assert cluster.nsw("fetch", "n-1", "--root", "campaigns", "--yes").returncode == 0
    assert (folder / "fetched/n-1.baseline.r1/y.ncu-rep").stat().st_size == 300
    logs = cluster.nsw("logs", "n-3", "--root", "campaigns")
    assert "speed=3" in logs.stdout, logs.stderr
    assert cluster.server.logins() <= 16


def test_a_machine_without_a_batch_system_is_a_site_too_and_nothing_runs_here(cluster):
    sites = (cluster.work / "sites.yaml").read_text().replace("scheduler: slurm", "scheduler: local")
    (cluster.work / "sites.yaml").write_text(sites)
    done = cluster.nsw(*cluster.run_words())
    assert done.returncode == 0, done.stderr + done.stdout
    assert cluster.ran() == ["1", "2", "3"]
    (folder,) = (cluster.work / "campaigns").iterdir()
    assert not (folder / "scratch").exists()
    (there,) = cluster.scratch.glob("*/*/jobs")
    assert len(list(there.glob("*.host"))) == 3


def killed_when_a_run_began(cluster):
    process = cluster.start(*cluster.run_words())
    deadline = time.monotonic() + 120
    while not cluster.ran():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_a_killed_nsw_goes_on_and_nothing_is_done_twice(cluster):
    killed_when_a_run_began(cluster)
    done = cluster.nsw("resume", "--root", "campaigns")
    assert done.returncode == 0, done.stderr
    assert cluster.ran() == ["1", "2", "3"]


def test_a_site_that_cannot_be_reached_costs_nothing_and_is_told(cluster):
    cluster.server.stop(sessions=True)
    done = cluster.nsw(*cluster.run_words())
    assert done.returncode == 3
    assert "far cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((cluster.work / "campaigns").glob("*")) if (cluster.work / "campaigns").exists() else True


def test_a_connection_that_is_lost_while_nsw_begins_names_the_command_that_goes_on(cluster):
    killed_when_a_run_began(cluster)
    cluster.server.stop(sessions=True)
    (folder,) = (cluster.work / "campaigns").iterdir()
    with socket.create_server(("127.0.0.1", cluster.server.port)) as listener:  # it takes connections and ends them
        ending = threading.Thread(target=end_connections, args=(listener,), daemon=True)
        ending.start()
        lost = cluster.nsw("resume", "--root", "campaigns")
        listener.shutdown(socket.SHUT_RDWR)
        ending.join()
    assert lost.returncode == 3
    assert "far cannot be reached" in lost.stderr
    assert f"nsw resume {folder.name}`" in lost.stderr
    assert "Traceback" not in lost.stderr
    cluster.server.start()
    done = cluster.nsw("resume", folder.name)
    assert done.returncode == 0, done.stderr
    assert cluster.ran() == ["1", "2", "3"]


def end_connections(listener):
    with contextlib.suppress(OSError):
        while True:
            listener.accept()[0].close()


def test_secrets_travel_in_one_file_that_only_its_owner_can_read_and_are_removed_in_the_end(cluster):
    text = RECIPE.replace("  files:", "  env: {HF_TOKEN: sesame-far}\n  files:")
    (cluster.work / "recipe.yaml").write_text(text)
    program = 'if [ ! -e "$0.mended" ]; then exit 1; fi; echo speed=${#HF_TOKEN}'.replace("$0", str(cluster.work / "x"))
    (cluster.work / "prog.sh").write_text(program)
    assert cluster.nsw(*cluster.run_words()).returncode == 1
    (there,) = cluster.scratch.glob("*/*")
    (here,) = (cluster.work / "campaigns").iterdir()

    def holders():
        files = [p for folder in (there, here) for p in folder.rglob("*") if p.is_file() and not p.is_symlink()]
        return {p for p in files if b"sesame" in p.read_bytes()}

    assert holders() == {there / "private/secrets.sh", here / "secrets.sh"}
    assert {p.stat().st_mode & 0o777 for p in holders()} == {0o600}
    assert {p.stat().st_mode & 0o777 for p in (there, there / "private", here)} == {0o700}
    (cluster.work / "x.mended").touch()
    again = cluster.nsw("retry", "--root", "campaigns")
    assert again.returncode == 0, again.stderr
    assert (here / "reports/n-1.baseline.r1/stdout").read_text() == "speed=10\n"
    assert holders() == set()
