"""Sites files and templates: what another user may have written is not read unless named, and runs no Python."""

import grp
import os
import pwd
import re
import struct

import pytest

from nsw.campaign.planning import make_plan
from nsw.cli.output import show_message
from nsw.errors import InputError, NswError
from nsw.plan.jobs import pack_jobs
from nsw.plan.model import Plan, Resources, Run
from nsw.safe_files import foreign_write_reason
from nsw.scripts.render import LARGEST, render_job
from nsw.site.names import untrusted_reason

from .test_sandbox import ESCAPES

EVIL = "nsw: 1\nsites:\n  NAME: {scheduler: local, gpus: {per_node: 0}, templates: {finish: t.j2}}\n"
PYTHON = "{{ cycler.__init__.__globals__.os.system('touch PWNED') }}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("NSW_SITES", raising=False)
    return tmp_path


@pytest.fixture
def own(folder):
    """The user's own sites file, which need not be named."""
    return write(folder / "config" / "nsw" / "sites.yaml")


def write(path, name="here", template="echo the end"):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(EVIL.replace("NAME", name))
    (path.parent / "t.j2").write_text(template)
    return path


def script(site, sites=None):
    planned = make_plan("cpu_quickstart", site, sites, notify=show_message)
    return planned.renderer()(planned.plan.jobs[0], "c", "/s")


# --- whose file it is ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "of_folder", "why"),
    [(0o644, 0o755, None), (0o600, 0o700, None), (0o666, 0o755, "it may be written by everybody (mode 0666)"),
     (0o644, 0o777, "its folder"), (0o644, 0o1777, None), (0o664, 0o755, None), (0o644, 0o775, None)],
)  # fmt: skip
def test_a_file_that_others_may_write_is_not_read_unless_named(own, mode, of_folder, why, capsys, monkeypatch):
    """A group that is this user's alone, as many systems make one for each user, counts as nobody else."""
    members(monkeypatch)
    own.chmod(mode)
    own.parent.chmod(of_folder)
    if why is None:
        assert script("here").endswith("echo the end\n")
        return
    with pytest.raises(NswError, match="there is no site 'here'"):
        script("here")
    said = capsys.readouterr().err
    assert f"sites.yaml is ignored, because another user may have written it: {why}" in said
    assert f"chmod go-w), or name it: `--sites {own}`" in said
    assert script("here", [own]).endswith("echo the end\n")


def members(monkeypatch, *others: str, name: str = "me") -> None:
    """Make the group of this user's files one with these members, called so."""
    user = pwd.getpwuid(os.geteuid())
    own = pwd.struct_passwd(("me", "x", user.pw_uid, os.getegid(), "", "/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: own)
    monkeypatch.setattr(grp, "getgrgid", lambda gid: grp.struct_group((name, "x", gid, list(others))))


def test_a_group_of_several_users_is_others(folder, monkeypatch):
    file = write(folder / "sites.yaml")
    file.chmod(0o664)
    members(monkeypatch, "me")
    assert foreign_write_reason(file) is None
    for others, name in (("eve",), "me"), ((), "users"):
        members(monkeypatch, *others, name=name)
        assert "others of its group" in foreign_write_reason(file)


def test_a_list_of_more_users_is_others(folder):
    """An access list shows in the group's bits, whoever the group is."""
    file = write(folder / "sites.yaml")
    entries = ((1, 6, -1), (2, 6, 4711), (4, 4, -1), (16, 6, -1), (32, 4, -1))  # user 4711 may write
    try:
        os.setxattr(
            file, "system.posix_acl_access", struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *e) for e in entries)
        )
    except OSError:
        pytest.skip("no access lists here")
    assert "others of its group" in foreign_write_reason(file)


def test_a_link_counts_by_what_it_leads_to(folder):
    real = write(folder / "elsewhere" / "sites.yaml")
    (folder / "sites.yaml").symlink_to(real)
    assert untrusted_reason(folder / "sites.yaml") is None
    real.chmod(0o666)
    assert "it may be written by everybody" in untrusted_reason(folder / "sites.yaml")
    real.chmod(0o644)
    real.parent.chmod(0o777)
    assert f"its folder {real.parent}" in untrusted_reason(folder / "sites.yaml")


def test_a_template_that_others_may_write_is_refused_unless_the_sites_file_is_named(own):
    (own.parent / "t.j2").chmod(0o666)
    with pytest.raises(InputError, match="may be written by everybody") as caught:
        script("here")
    assert caught.value.diagnostics[0].mark.line == 3
    assert f"`--sites {own}`" in caught.value.diagnostics[0].hint
    assert script("here", [own]).endswith("echo the end\n")


def test_a_sites_file_of_another_user_is_not_read_unless_named(victim, neighbour):
    """Nor is the user's own where it is a link to that: the built-in site stays what it is."""
    (config := victim.home / ".config" / "nsw").mkdir(parents=True)
    (config / "sites.yaml").symlink_to(neighbour.home / "sites.yaml")
    victim.owns(victim.home)
    for name in ("local", "here"):
        file = write(neighbour.home / "sites.yaml", name, PYTHON)
        neighbour.owns(neighbour.home)
        for words in (["plan", "cpu_quickstart"], ["render", "cpu_quickstart", "--site", name], ["sites"]):
            done = victim.nsw(*words)
            assert f"it belongs to user {neighbour.uid}" in done.stderr
            assert "the end" not in done.stdout
        named = victim.nsw("render", "cpu_quickstart", "--site", name, "--sites", file)
        assert (named.returncode, "unsafe" in named.stderr) == (2, True), named
    asked = {"_NSW_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    asked["_TYPER_COMPLETE_ARGS"] = "nsw plan --site "
    assert victim.nsw(**asked).stdout.split() == ["local", "demo"]
    assert not list(neighbour.home.glob("PWNED"))


def test_a_link_of_another_user_on_the_way_to_the_own_file_is_not_followed(victim, neighbour):
    """Where ~/.config may be written by everybody, a neighbour can let ~/.config/nsw lead to a downloaded folder."""
    config, downloaded = victim.home / ".config", victim.home / "downloaded"
    config.mkdir()
    write(downloaded / "sites.yaml", "here", PYTHON)
    victim.owns(victim.home)
    config.chmod(0o777)
    (link := config / "nsw").symlink_to(downloaded)
    neighbour.owns(link)
    said = victim.nsw("sites")
    assert f"{link} is a link that user {neighbour.uid} made" in said.stderr
    assert "here" not in said.stdout
    link.unlink()
    link.symlink_to(downloaded)
    victim.owns(link)
    assert "here" in victim.nsw("sites").stdout


# --- the folder that one is in ---------------------------------------------------------------------------------------

DOWNLOADED = """\
nsw: 1
sites:
  theirs:
    default: true
    scheduler: slurm
    scratch: /tmp
    transport: {kind: openssh, host: x, config: ssh_config}
"""


def test_a_folder_with_a_sites_file_runs_nothing_of_it(victim):
    """As one that was downloaded: its ssh_config names commands, and everything in it belongs to this user."""
    (folder := victim.home / "downloaded").mkdir()
    (folder / "sites.yaml").write_text(DOWNLOADED)
    (victim.home / "ssh").write_text('#!/bin/sh\necho "$@" >>~/CALLED\nexit 255\n')
    (victim.home / "ssh").chmod(0o755)
    victim.owns(victim.home)
    path, called = f"{victim.home}:{os.environ['PATH']}", victim.home / "CALLED"
    for words in (["plan", "cpu_quickstart"], ["plan", "cpu_quickstart", "--site", "theirs"], ["sites"],
                  ["sites", "check", "theirs"], ["attach", "--site", "theirs"]):  # fmt: skip
        done = victim.nsw(*words, cwd=folder, PATH=path)
        assert "sites.yaml in the current folder is read only if you name it: `--sites sites.yaml`" in done.stderr
        assert done.returncode == (2 if "theirs" in words else 0), done.stderr
        assert not called.exists(), words
    victim.nsw("sites", "check", "theirs", "--sites", "sites.yaml", cwd=folder, PATH=path)
    assert "-F ssh_config" in called.read_text(), "what is named is trusted"


def test_a_sites_file_of_the_folder_is_not_even_opened(victim):
    os.mkfifo(victim.home / "sites.yaml")
    victim.owns(victim.home)
    assert victim.nsw("plan", "cpu_quickstart", "--site", "local").returncode == 0


def test_a_template_of_another_user_is_not_read(victim, neighbour):
    file = write(victim.home / ".config" / "nsw" / "sites.yaml")
    (file.parent / "t.j2").unlink()
    (file.parent / "t.j2").symlink_to(neighbour.home / "t.j2")
    (neighbour.home / "t.j2").write_text("echo theirs")
    victim.owns(victim.home)
    neighbour.owns(neighbour.home)
    done = victim.nsw("render", "cpu_quickstart", "--site", "here")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"it belongs to user {neighbour.uid}" in done.stderr


# --- what a template may do ------------------------------------------------------------------------------------------


def rendered(folder, text):
    run = Run("r", "c", {"n": 1}, "baseline", "baseline", None, 1, ("true",), {}, Resources())
    plan = Plan("t", "here", (), pack_jobs("t", [run], runs_per_task=1, max_array=1))
    (folder / "t.j2").write_text(text)
    return render_job(plan, plan.jobs[0], scheduler="local", campaign="c", scratch="/s",
                      overrides={"finish": folder / "t.j2"})  # fmt: skip


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("{{ super() }}", "exit 0"),
        ("{% for r in job.runs %}{{ loop.index }} {{ loop.cycle('a', 'b') }} {{ r.id | sh }}{% endfor %}", "1 a r"),
        ("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(plan.name) }}", "<t>"),
        ("{{ job.runs[0].params.items() | list }}", "[('n', 1)]"),
        ("{% set n = namespace(x=1) %}{{ n.x }}{{ range(3) | list }}{{ dict(a=1) }}", "1[0, 1, 2]{'a': 1}"),
        ("{{ plan.name.upper() }} {{ '{:>3}'.format(1) }} {{ ','.join(['a', 'b']) }}", "T   1 a,b"),
        ("{% include 'job/local.sh.j2' ignore missing %}", "exit 0"),
    ],
)
def test_a_template_may_do_what_templates_do(folder, text, end):
    assert rendered(folder, text).endswith(end + "\n")


@pytest.mark.parametrize("text", [*ESCAPES, PYTHON])
def test_a_template_reaches_no_python(folder, text):
    try:
        end = rendered(folder, text).rpartition("esac")[2]
    except NswError:
        end = ""
    assert not re.search(r"<class|<built-in|<function|<module|root:", end)
    assert [p.name for p in folder.iterdir()] == ["t.j2"]


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../../../etc/passwd", "job/../../etc/passwd", "t.j2", "./t.j2", "../nsw/errors.py"]
)
@pytest.mark.parametrize("how", ["{{% include '{}' %}}", "{{% import '{}' as x %}}", "{{% from '{}' import x %}}"])
def test_a_template_includes_no_file_but_nsw_s_own(folder, how, name):
    with pytest.raises(NswError):
        rendered(folder, how.format(name))


@pytest.mark.parametrize("text", ["{{ 1 / 0 }}", "{{ [1][5] }}", "{{ nothing }}", "{{ 'x' + 1 }}", "{% for x in 3 %}{% endfor %}",
                                  "{{ job.runs.append(1) }}", "{{ plan.marks.update(a=1) }}", "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
                                  "{{ range(10 ** 9) | list }}", "x" * (LARGEST + 1)])  # fmt: skip
def test_a_template_with_a_fault_is_told_and_is_no_traceback(folder, text):
    with pytest.raises(NswError, match="template"):
        rendered(folder, text)
