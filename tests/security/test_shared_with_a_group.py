"""`share: group`: the group reads a campaign, and writes nothing that nsw runs, whatever umask and modes its user has."""

import sys

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
