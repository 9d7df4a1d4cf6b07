"""`share: group`: the group reads a campaign, and writes nothing that nsw runs, whatever umask and modes its user has."""

import sys

import pytest

SITES = "nsw: 1\nsites:\n  here: {scheduler: local, share: group, gpus: {per_node: 0}}\n"
RECIPE = """
nsw: 1
name: t
passes: [baseline]
resources: {gpus: 0, time: 1m}
app: {command: "bash prog.sh", files: [prog.sh, part]}
"""


def test_the_group_can_write_nothing_of_a_campaign_that_it_may_read(victim):
    home = victim.home
    (home / "part").mkdir()
    for name, text in (("r.yaml", RECIPE), ("sites.yaml", SITES), ("prog.sh", "true\n"), ("part/lib.sh", "true\n")):
        (home / name).write_text(text)
        (home / name).chmod(0o664)
    (home / "sites.yaml").chmod(0o600)
    (home / "part").chmod(0o775)
    victim.owns(home)
    nsw = f"{sys.executable} -P -m nsw run r.yaml --site here --sites sites.yaml --yes"
    done = victim.run("bash", "-c", f"umask 002; {nsw}")
    assert done.returncode == 0, done.stderr
    (campaign,) = (home / "campaigns").iterdir()
    paths = [campaign, *(path for path in campaign.rglob("*") if not path.is_symlink())]
    assert campaign.stat().st_mode & 0o777 == 0o750
    assert {"prog.sh", "lib.sh", "part"} <= {path.name for path in paths}
    assert [str(path) for path in paths if path.stat().st_mode & 0o022] == []


DRIVE = """
import os, sys, nsw
before = int(sys.argv[1], 8)
os.umask(before)
for _ in nsw.run("r.yaml", site="here", sites=["sites.yaml"]):
    print(f"umask {os.umask(before):03o}")
"""


@pytest.mark.parametrize("umask", ["002", "077"])
def test_from_python_the_group_reads_and_writes_nothing_and_the_programs_umask_stays(victim, umask):
    home = victim.home
    for name, text in (("r.yaml", RECIPE.replace(", part]", "]")), ("sites.yaml", SITES), ("prog.sh", "true\n")):
        (home / name).write_text(text)
        (home / name).chmod(0o644)
    (home / "drive.py").write_text(DRIVE)
    victim.owns(home)
    done = victim.run(sys.executable, "-P", home / "drive.py", umask)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split("\n")[:-1]) == {f"umask {umask}"}
    (campaign,) = (home / "campaigns").iterdir()
    paths = [path for path in campaign.rglob("*") if not path.is_symlink()]
    assert [str(path) for path in paths if path.stat().st_mode & 0o022] == []
    shown = [campaign / name for name in ("campaign.db", "state.json", "recipe.lock.yaml", "log.txt", "app/prog.sh")]
    shown += [*(campaign / "reports").rglob("*"), *(campaign / "tables").rglob("*")]
    assert [str(path) for path in shown if not path.stat().st_mode & 0o040] == []
