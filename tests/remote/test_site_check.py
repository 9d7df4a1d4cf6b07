"""`nsw sites check NAME` over a real sshd."""

import json
import subprocess
import time

import pytest

from nsw.schedulers.slurm import Slurm
from nsw.site_check import check as kept_checks
from nsw.site_check.check import Check, Verdict, check_site, chip_check, node_checks, probe_words, quota_check

from .test_campaign import cluster  # noqa: F401  a fixture


def test_a_site_that_works_is_told_line_by_line(cluster):  # noqa: F811
    done = cluster.nsw("sites", "check", "cluster", "--sites", "sites.yaml", "--json")
    found = {one["what"]: one for one in json.loads(done.stdout)["checks"]}
    assert found["connection"]["verdict"] == "good", done.stdout + done.stderr
    assert found["host key"]["verdict"] == found["login"]["verdict"] == "good"
    assert found["login"]["found"] == "as root"
    assert found["scheduler"]["found"].startswith("Slurm")
    assert {"limits", "account", "quota", "counters", "chip"} <= found.keys()
    assert [name for name, one in found.items() if one["verdict"] != "good" and not one["fix"]] == []
    assert found["scratch"]["verdict"] == "good"
    assert str(cluster.scratch) in found["scratch"]["found"]
    assert found["queue"]["verdict"] == "good"
    assert found["queue"]["found"] == "the default queue: accepts a job of one minute"
    assert done.returncode == 0


@pytest.mark.parametrize("cluster", ["ssh"], indirect=True)
def test_a_queue_that_takes_no_job_is_told_with_what_the_scheduler_said(cluster):  # noqa: F811
    sites = cluster.work / "sites.yaml"
    sites.write_text(sites.read_text().replace("scratch:", "partition: no-such\n    scratch:"))
    done = cluster.nsw("sites", "check", "cluster", "--sites", "sites.yaml")
    assert done.returncode == 3
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("bad"))
    assert line.split()[1] == "queue"
    assert "invalid partition specified: no-such" in " ".join(done.stdout.split())
    assert "`sinfo -s` lists the partitions" in done.stdout


def test_a_site_that_cannot_be_reached_is_one_line_with_what_to_do(cluster):  # noqa: F811
    cluster.server.stop(sessions=True)
    done = cluster.nsw("sites", "check", "cluster", "--sites", "sites.yaml")
    assert done.returncode == 3
    assert done.stdout.startswith("bad      connection")
    assert [line for line in done.stdout.splitlines()[1:] if not line.startswith(" ")] == []
    assert "Traceback" not in done.stderr


def test_a_host_key_that_is_unknown_and_a_key_that_is_not_taken_are_lines_of_their_own(cluster):  # noqa: F811
    words = ("sites", "check", "cluster", "--sites", "sites.yaml")
    known = cluster.server.folder / "known_hosts"
    kept = known.read_text()
    known.write_text("")
    assert cluster.nsw(*words).stdout.startswith("bad      host key")
    known.write_text(kept)
    (cluster.server.folder / "authorized_keys").write_text("")
    done = cluster.nsw(*words)
    assert done.stdout.startswith("bad      login")
    assert done.returncode == 3


@pytest.mark.parametrize(("ahead", "verdict"), [(0, Verdict.GOOD), (120, Verdict.WARNING)])
def test_a_clock_that_is_wrong_is_told(far, ahead, verdict):
    checks = list(check_site({}, far, None, now=lambda: time.time() - ahead))
    assert next(one for one in checks if one.what == "clock").verdict is verdict


def test_a_scheduler_that_is_not_there_is_told_with_what_to_do(far):
    checks = {one.what: one for one in check_site({"scratch": "/proc/none"}, far, Slurm())}
    if checks["scheduler"].verdict is Verdict.BAD:
        assert "login_shell" in checks["scheduler"].fix
    assert checks["scratch"].verdict is Verdict.BAD


@pytest.mark.parametrize("cluster", ["openssh"], indirect=True)
def test_a_compute_node_is_looked_at_with_one_short_job_of_which_nothing_stays(cluster, monkeypatch):  # noqa: F811
    monkeypatch.setenv("XDG_CACHE_HOME", str(cluster.work / "cache"))
    sites = (
        (cluster.work / "sites.yaml")
        .read_text()
        .replace("lost_after: 20s}", "lost_after: 20s}\n    profilers: {ncu: /no/ncu}")
    )
    (cluster.work / "sites.yaml").write_text(sites)
    words = ("sites", "check", "cluster", "--sites", "sites.yaml", "--json")
    bad = cluster.nsw(*words, "--node")
    assert bad.returncode == 3  # not from the node: the login node says it already
    assert "node" not in {one["what"] for one in json.loads(bad.stdout)["checks"]}
    warned = cluster.nsw("run", "recipe.yaml", "--site", "cluster", "--sites", "sites.yaml", "--yes")
    assert "ago: ncu: /no/ncu" in " ".join(warned.stderr.split())
    (cluster.work / "sites.yaml").write_text(sites.replace("{ncu: /no/ncu}", "{}"))
    assert cluster.nsw("clean", "--root", "campaigns", "--yes").returncode == 0
    done = cluster.nsw(*words, "--node")
    found = {one["what"]: one for one in json.loads(done.stdout)["checks"]}
    assert done.returncode == 0, done.stdout + done.stderr
    assert found["node"]["verdict"] == "good"
    assert found["clock (node)"]["verdict"] == "good"
    assert found["ncu (node)"]["verdict"] in {"skipped", "good"}
    assert not list(cluster.scratch.glob("*/*"))


def test_a_machine_without_a_scheduler_is_not_sent_to_compute_nodes_that_it_has_not(far):
    site = {"scheduler": "local"}
    checks = list(check_site(site, far, None))
    checks.append(chip_check(site, checks))
    assert {"GPUs", "counters", "nsys", "chip"} <= {one.what for one in checks}
    assert [one for one in checks if "node" in one.found + one.fix] == []


def test_a_profiler_of_another_package_is_looked_for_where_the_site_names_it(far, tmp_path):
    tool = tmp_path / "my profiler"
    tool.write_text("#!/bin/sh\nexit 1\n")  # it has no --version
    tool.chmod(0o755)
    site = {"profilers": {"mine": str(tool), "yours": "/no/yours"}}
    checks = {one.what: one for one in check_site(site, far, None)}
    assert (checks["mine"].verdict, checks["mine"].found) == (Verdict.GOOD, str(tool))
    assert (checks["yours"].verdict, checks["yours"].found) == (Verdict.BAD, "/no/yours: not found")
    said = subprocess.run(probe_words(site), capture_output=True, text=True, check=True).stdout
    nodes = {one.what: one for one in node_checks(site, said, earliest=0, latest=time.time())}
    assert nodes["mine (node)"].verdict is Verdict.GOOD
    assert nodes["yours (node)"].verdict is Verdict.BAD


def test_what_a_node_says_is_judged_and_names_the_way_out():
    site = {"profilers": {"nsys": "/opt/nsys"}, "gpus": {"per_node": 4}}
    said = "nsw-time 1300.5\nnsw-host n1\nnsw-tool ncu Version 2025.3\nnsw-gpu GPU 0: NVIDIA H100 (UUID: GPU-1)\nnsw-admin 1\n"
    checks = {one.what: one for one in node_checks(site, said, earliest=1000.0, latest=1100.0)}
    assert (checks["clock (node)"].verdict, checks["clock (node)"].found) == (
        Verdict.WARNING, "200 s ahead of the login node's",
    )  # fmt: skip
    assert checks["nsys (node)"].verdict is Verdict.BAD
    assert checks["ncu (node)"].found == "Version 2025.3"
    assert checks["GPUs (node)"].found == "1 x NVIDIA H100"
    assert checks["counters (node)"].verdict is Verdict.WARNING
    assert "ERR_NVGPUCTRPERM" in checks["counters (node)"].fix
    assert "NVreg_RestrictProfilingToAdminUsers=0" in checks["counters (node)"].fix
    fine = {one.what: one for one in node_checks(site, "nsw-time 1050\nnsw-host n1\n", earliest=1000.0, latest=1100.0)}
    assert fine["clock (node)"].verdict is Verdict.GOOD
    assert "the job saw none" in fine["GPUs (node)"].found


def test_a_scheduler_that_gives_a_job_no_gpu_of_its_own_is_told_of():
    two = "".join(f"nsw-gpu GPU {n}: NVIDIA A100 (UUID: GPU-{n})\n" for n in range(2))

    def own(said: str, **site: object) -> list[str]:
        checks = node_checks({"gpus": {"per_node": 2}, **site}, said, earliest=0.0, latest=1.0)
        return [one.found for one in checks if one.what == "own GPU (node)"]

    assert own(f"nsw-given \n{two}") == ["a job of one GPU is not told which of the 2 is its own"]
    assert own(f"nsw-given 1\n{two}") == []
    assert own(f"nsw-given \n{two}", whole_nodes=True) == []
    assert own("nsw-given \nnsw-gpu GPU 0: NVIDIA A100 (UUID: GPU-0)\n") == []


@pytest.mark.parametrize(
    ("printed", "verdict", "found"),
    [
        ("", None, ""),
        ("Disk quotas for user me (uid 5): none\n", None, ""),
        (
            "  Filesystem blocks quota limit grace files\n/dev/sda1 1048576 2097152 3145728 10 0 0\n",
            Verdict.GOOD,
            "1.0 of 2.0 GiB",
        ),
        ("/lustre 2097152* 2097152 3145728 6days 10 0 0 -\n", Verdict.WARNING, "2.0 of 2.0 GiB"),
        ("/home 100 0 0\n/scratch 990 0 1000\n", Verdict.WARNING, "/scratch"),
    ],
)
def test_a_quota_is_told_before_it_is_full(printed, verdict, found):
    check = quota_check(printed)
    assert (check.verdict if check else None) == verdict
    assert check is None or found in check.found


def test_what_was_found_is_kept_for_a_day_and_only_for_the_same_site(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    site = {"name": "c", "queue": "a"}
    checks = [
        Check("counters (node)", Verdict.WARNING, "for administrators only", "ask"),
        Check("clock", Verdict.WARNING, "9 s ahead"),
        Check("scheduler", Verdict.GOOD, "Slurm"),
        Check("login", Verdict.BAD, "refused", "ask"),  # whether that is so still, the run itself sees
    ]
    assert kept_checks.load_checks(site) is None
    kept_checks.save_checks(site, checks)
    age, found = kept_checks.load_checks(site)
    assert found == checks
    assert age < 60
    later = time.time() + 25 * 3600
    with monkeypatch.context() as tomorrow:
        tomorrow.setattr(time, "time", lambda: later)
        assert kept_checks.load_checks(site) is None
    assert kept_checks.load_checks(site | {"queue": "b"}) is None
    with_counters = kept_checks.warnings(site, counters=True)
    assert len(with_counters) == 2
    assert "counters (node): for administrators only (ask)" in with_counters[0]
    assert kept_checks.warnings(site, counters=False) == with_counters[1:]
    next(tmp_path.rglob("*.json")).write_text("[]")
    assert kept_checks.load_checks(site) is None
