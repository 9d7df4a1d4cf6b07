"""Sites: order of the search, what is filled in, and faults that nothing hides."""

import sys
from pathlib import Path

import pytest

from nsw.errors import InputError, UsageError
from nsw.recipe.passes import site_profilers
from nsw.site import load, names
from nsw.site.load import list_sites, load_site, read_sites
from nsw.site.names import schedulers

FULL = Path(__file__).with_name("full.yaml").read_text()


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """No sites files but the tests' own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NSW_SITES", raising=False)
    for module in (names, load):
        monkeypatch.setattr(module, "user_file", lambda: tmp_path / "user" / "sites.yaml")


def sites_file(path, name="mine", extra=""):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(f"nsw: 1\nsites:\n  {name}:\n    scheduler: slurm\n{extra}")
    return path


def test_the_built_in_sites():
    local, demo = list_sites()
    assert (local.site.name, demo.site.name) == ("local", "demo")
    assert local.origin == "built in"
    assert local.site.python == sys.executable
    assert local.site.gpus.per_node == "auto"
    assert (demo.site.replay, demo.site.gpus.chip, demo.site.gpus.per_node) == ("alexnet-4xH200", "gh100", 4)


def test_the_search_goes_from_the_command_line_to_the_user_s_own_file_and_not_to_the_current_folder(
    tmp_path, monkeypatch
):
    given = sites_file(tmp_path / "given.yaml")
    environment = sites_file(tmp_path / "environment.yaml")
    sites_file(tmp_path / "sites.yaml")
    user = sites_file(tmp_path / "user/sites.yaml")
    monkeypatch.setenv("NSW_SITES", str(environment))
    for path, shown in (
        (given, str(given)),
        (environment, str(environment)),
        (user, str(user)),
    ):
        assert load_site("mine", [given] if given.exists() else None).origin == shown
        path.unlink()
        if path == environment:
            monkeypatch.delenv("NSW_SITES")
    with pytest.raises(UsageError) as caught:
        load_site("mine")
    assert caught.value.hint == (
        "sites.yaml in the current folder is read only if you name it: `--sites sites.yaml`,"
        ' or `export NSW_SITES="$PWD/sites.yaml"`'
    )
    assert load_site("mine", [Path("sites.yaml")]).origin == "sites.yaml"
    monkeypatch.setenv("NSW_SITES", str(tmp_path / "sites.yaml"))
    assert load_site("mine").requested


def test_a_site_of_ones_own_stands_before_the_built_in(tmp_path):
    sites_file(tmp_path / "user/sites.yaml", "local")
    assert load_site("local").site.scheduler == "slurm"


def test_an_unknown_site_lists_the_known_ones_and_where_they_are(tmp_path):
    user = sites_file(tmp_path / "user/sites.yaml", "polaris")
    with pytest.raises(UsageError) as caught:
        load_site("polars")
    assert caught.value.render() == (
        f"there is no site 'polars'; there are:\n  polaris ({user})\n  local (built in)\n  demo (built in)\n"
        "  hint: did you mean 'polaris'?"
    )
    with pytest.raises(UsageError) as caught:
        load_site("mira")
    assert caught.value.hint == f"define it in {user}"
    with pytest.raises(UsageError) as caught:
        load_site("theta")
    assert "recipes/sites/theta.yaml` uses it, in a copy with your account in it" in caught.value.hint
    sites_file(tmp_path / "sites.yaml")
    with pytest.raises(UsageError) as caught:
        load_site("polars")
    assert caught.value.hint.startswith("did you mean 'polaris'? sites.yaml in the current folder is read only if")


def test_a_broken_file_does_not_hide_behind_the_built_in_sites(tmp_path):
    sites_file(tmp_path / "sites.yaml", extra="    quue: debug\n")
    with pytest.raises(InputError) as caught:
        load_site("local", [Path("sites.yaml")])
    assert caught.value.render() == (
        "sites.yaml:5:5: unknown key 'quue' in sites.mine\n  5 |     quue: debug\n    |     ^^^^\n"
        "  hint: did you mean 'queue'?"
    )


def test_a_file_asked_for_that_is_not_there_is_told(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        load_site("local", [tmp_path / "none.yaml"])


def test_the_full_file(tmp_path):
    (tmp_path / "my_directives.sh.j2").touch()
    (tmp_path / "sites.yaml").write_text(FULL)
    site = load_site("polaris", [tmp_path / "sites.yaml"]).site
    assert site.scratch == "/eagle/MyProject/$USER/nsw"
    assert site.limits.download == 20 << 30
    assert site.limits.max_walltime == 86400
    assert not site.canary.is_wanted(1000)
    assert str(site.confirm_above) == "1 node-hour"
    assert site.python is None


@pytest.mark.parametrize(
    ("right", "wrong", "place", "message"),
    [
        (
            "scheduler: pbs",
            "scheduler: pbz",
            (4, 16),
            f"expected one of {', '.join(schedulers())}; found 'pbz'",
        ),
        ("{{ account }}", "{{ acount }}", (6, 24), "the expression uses 'acount', which this site does not set"),
        ("{{ account }}", "{{ account", (6, 32), "this expression is not valid: unexpected char '$'"),
        (", host: polaris", "", (5, 16), "the transport openssh needs a host"),
        ("{nsys:", "{nsis:", (11, 17), f"expected one of {', '.join(site_profilers())}; found 'nsis'"),
        ("per_node: 4", "per_node: x", (12, 35), "expected a whole number of at least 0, found 'x'"),
        ("runs_per_job: 1", "runs_per_job: 0", (13, 83), "expected a whole number of at least 1, found 0"),
        ("max_walltime: 24h, runs_per_job: 1", "runs_per_job: fill", (13, 64),
         "fill packs a job up to max_walltime, which this site does not set"),
        ("1 node-hour", "1", (15, 20), "the amount 1 has no unit"),
        ("account: MyProject", "name: other", (7, 5), "a site's name is not set below it"),
        (
            "my_directives",
            "your_directives",
            (16, 29),
            "there is no file 'your_directives.sh.j2' beside the sites file",
        ),
        ("account: MyProject", "replay: mine", (7, 13), "expected alexnet-4xH200, the recorded campaign that nsw has; found 'mine'"),
        ("polaris:\n", "pola ris:\n", (3, 3), "'pola ris' is not a name"),
    ],
)  # fmt: skip
def test_faults_are_told_at_their_place(tmp_path, right, wrong, place, message):
    (tmp_path / "my_directives.sh.j2").touch()
    path = tmp_path / "sites.yaml"
    assert right in FULL
    path.write_text(FULL.replace(right, wrong, 1))
    with pytest.raises(InputError) as caught:
        read_sites(path)
    found = [((d.mark.line, d.mark.column), d.message) for d in caught.value.diagnostics]
    assert (place, message) in found


def test_a_remote_site_needs_a_scratch_folder(tmp_path):
    path = sites_file(tmp_path / "sites.yaml", extra="    transport: {kind: ssh, host: h}\n")
    with pytest.raises(InputError, match="needs 'scratch'"):
        read_sites(path)


@pytest.mark.parametrize(
    ("gres", "message"),
    [("gpu:{{ gpu }}", "the expression uses 'gpu', which gres does not know"), ("gpu:{{ gpus", "expression")],
)
def test_a_site_s_words_for_gpus_know_no_parameters(tmp_path, gres, message):
    with pytest.raises(InputError, match=message) as caught:
        list_sites([sites_file(tmp_path / "sites.yaml", extra=f"    gres: '{gres}'\n")])
    assert caught.value.diagnostics[0].mark.line == 5
