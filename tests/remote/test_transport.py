"""What a transport over a real sshd does: commands, files, and what goes wrong on the way."""

import hashlib
import os
import re
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nsw.errors import CommandError, DownloadLimitError, HostKeyError, LoginError, UnreachableError, UsageError
from nsw.transport.model import MOST_OUTPUT, Unreadable, connect
from nsw.transport.ssh_login import known_keys_of_host

from .conftest import SSHD, Server


def test_a_command_says_how_it_ended_and_what_it_printed(far):
    done = far.run(["bash", "-c", "echo out; echo err >&2; exit 3"], timeout=60)
    assert (done.returncode, done.stdout, done.stderr, done.timed_out) == (3, "out\n", "err\n", False)


def test_words_reach_the_command_as_they_are(far):
    words = ["a b", "", "$HOME", "`id`", "'", '"', "\\", "a\nb", "ü", "*", "--"]
    done = far.run(["printf", "%s|", *words], timeout=60)
    assert done.stdout == "".join(f"{word}|" for word in words)


def test_threads_share_one_connection(server):
    site = {"transport": {"kind": "ssh", "host": "far", "config": str(server.config)}}

    def campaign(number):
        transport = connect(site, None)
        return [transport.run(["echo", f"{number} {at}"], timeout=60).stdout for at in range(10)]

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(campaign, range(4)))
    assert answers == [[f"{number} {at}\n" for at in range(10)] for number in range(4)]
    assert server.logins() == 1


def test_commands_share_one_connection(far, server):
    for _ in range(5):
        far.run(["true"], timeout=60)
    assert server.logins() == 1


def test_many_commands_take_one_message_and_one_that_fails_keeps_no_other(far):
    done = far.run_many([["echo", "1"], ["false"], ["no-such-command"], ["echo", "4"]], timeout=60)
    assert [(one.returncode, one.stdout) for one in done] == [(0, "1\n"), (1, ""), (127, ""), (0, "4\n")]


def test_a_command_that_takes_too_long_is_ended_with_all_it_started(far, tmp_path):
    go, mark = tmp_path / "go", tmp_path / "still"
    done = far.run(["bash", "-c", f"(until [ -e '{go}' ]; do sleep 0.1; done; touch '{mark}') & sleep 60"], timeout=1)
    assert done.timed_out
    assert far.run(["echo", "next"], timeout=60).stdout == "next\n"
    go.touch()
    time.sleep(1)
    assert not mark.exists()


def test_a_process_that_ignores_sigterm_does_not_outlive_its_commands_time_limit(far, tmp_path):
    mark = tmp_path / "process"
    stubborn = f"(trap '' TERM; echo $BASHPID >'{mark}'; while :; do sleep 1; done) & wait"
    for seconds in (2, 8, 32):  # until the machine was fast enough for the process to begin
        done = far.run(["bash", "-c", stubborn], timeout=seconds)
        assert done.timed_out
        if mark.exists() and mark.read_text():
            break
    assert not is_running(int(mark.read_text()))
    assert far.run(["echo", "next"], timeout=60).stdout == "next\n"


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_input_reaches_the_command_and_nothing_else(far):
    data = bytes(range(256)) * 300
    done = far.run(["sha256sum"], timeout=60, stdin=data)
    assert done.stdout.split()[0] == hashlib.sha256(data).hexdigest()
    assert far.run(["cat"], timeout=60).stdout == ""


def test_no_agent_is_forwarded_though_the_configuration_wants_it(site, server, tmp_path, monkeypatch):
    with subprocess.Popen(["ssh-agent", "-D", "-a", tmp_path / "agent"], stdout=subprocess.DEVNULL) as agent:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        server.config.write_text(server.config.read_text() + "  ForwardAgent yes\n")
        transport = connect(site, str(tmp_path / "scratch"))
        try:
            assert transport.run(["bash", "-c", "echo ${SSH_AUTH_SOCK-none}"], timeout=60).stdout == "none\n"
        finally:
            transport.close()
            agent.kill()


def test_variables_that_would_change_a_command_are_cleared(far):
    show = ["bash", "-c", "echo ${FROM_SSHD-none}"]
    assert far.run(show, timeout=60).stdout == "yes\n"
    assert far.run(show, timeout=60, without=["FROM_"]).stdout == "none\n"
    assert far.run(show, timeout=60, without=["FROM_"], keep=["FROM_SSHD"]).stdout == "yes\n"


def test_what_is_there_what_is_absent_and_what_cannot_be_told_are_three_answers(far, tmp_path):
    whole = tmp_path / "file"
    whole.write_bytes(b"\0\xff two\nlines\n")
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    names = [str(tmp_path / name) for name in ("file", "empty", "none", "file/below")]
    found = far.read_many([*names, str(tmp_path / "pipe"), str(tmp_path)])
    assert isinstance(found[str(tmp_path / "pipe")], Unreadable)
    assert list(found.values())[:4] == [whole.read_bytes(), b"", None, None]
    assert isinstance(found[str(tmp_path)], Unreadable)
    assert far.read_many(names[:1], 3) == {names[0]: b"\0\xff "}
    assert far.tail(names[0], 6) == b"lines\n"
    assert far.tail(names[2], 6) is None


def test_of_a_file_longer_than_any_output_as_much_is_read_as_was_asked_for(far, tmp_path):
    with (tmp_path / "file").open("wb") as file:
        file.truncate(MOST_OUTPUT + 8)
    found = far.read_many([str(tmp_path / "file")], MOST_OUTPUT + 7)
    assert len(found[str(tmp_path / "file")]) == MOST_OUTPUT + 7


def test_a_listing_holds_plain_files_that_match(far, tmp_path):
    folder = tmp_path / "it's a folder"
    folder.mkdir()
    (folder / "a.sqlite").write_text("12345")
    (folder / "b.txt").touch()
    (folder / "c.sqlite").symlink_to("/etc/passwd")
    (folder / "new\nline.sqlite").touch()
    (folder / "d.sqlite").mkdir()
    os.mkfifo(folder / "e.sqlite")
    found = far.list_many({str(folder): ["*.sqlite"], str(tmp_path / "none"): ["*"]})
    assert [[(e.name, e.size) for e in entries] for entries in found.values()] == [[("a.sqlite", 5)], []]


def test_files_are_sent_once_by_content_with_their_modes(far, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there" / "deep"
    (here / "sub").mkdir(parents=True)
    (here / "run.sh").write_text("#!/bin/sh\n")
    (here / "run.sh").chmod(0o750)
    (here / "sub" / "a b").write_bytes(b"x" * 100_000)
    far.stage([(here, str(there))])
    assert (there / "run.sh").stat().st_mode & 0o777 == 0o750
    before = (there / "sub" / "a b").stat().st_ino
    (here / "run.sh").write_text("#!/bin/sh\ntrue\n")
    far.stage([(here, str(there))])
    assert (there / "run.sh").read_text() == "#!/bin/sh\ntrue\n"
    assert (there / "sub" / "a b").stat().st_ino == before
    assert sorted(p.name for p in there.iterdir()) == ["run.sh", "sub"]


def test_a_thousand_files_are_brought_in_two_commands(far, server, tmp_path):
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    for n in range(1000):
        (there / f"{n}").write_text(f"file {n}")
    listed = far.list_many({str(there): ["*"]})[str(there)]
    far.get_many([(f"{there}/{entry.name}", here / entry.name) for entry in listed])
    assert {p.name: p.read_text() for p in here.iterdir()} == {f"{n}": f"file {n}" for n in range(1000)}
    assert server.logins() <= 2


def test_a_file_that_is_not_there_is_an_error_that_names_it_and_leaves_nothing(far, tmp_path):
    (tmp_path / "is").write_text("there")
    with pytest.raises(CommandError, match="is-not"):
        far.get_many([(str(tmp_path / "is"), tmp_path / "a"), (str(tmp_path / "is-not"), tmp_path / "b")])
    assert not (tmp_path / "b").exists()


def test_more_than_the_site_allows_is_not_received(far, tmp_path):
    (tmp_path / "large").write_bytes(b"x" * 5000)
    far._left = 4000
    with pytest.raises(DownloadLimitError, match=r"limits\.download"):
        far.get_many([(str(tmp_path / "large"), tmp_path / "a")])
    assert not (tmp_path / "a").exists()


def test_a_path_is_expanded_over_there(far):
    user = far.run(["id", "-un"], timeout=60).stdout.strip()
    assert far.expand("/scratch/$USER/nsw") == f"/scratch/{user}/nsw"
    assert far.expand("~/nsw").endswith("/nsw")
    with pytest.raises(UsageError, match="NOT_SET_THERE is not set"):
        far.expand("/a/$NOT_SET_THERE")
    with pytest.raises(UsageError, match="absolute"):
        far.expand("relative")


def test_a_connection_that_was_cut_is_made_anew_and_the_command_in_between_is_in_doubt(far, server, tmp_path):
    assert far.run(["true"], timeout=60).returncode == 0
    begun = tmp_path / "begun"

    def cut():
        while not begun.exists():
            time.sleep(0.02)
        server.cut()

    cutting = threading.Thread(target=cut, daemon=True)
    cutting.start()
    done = far.run(["bash", "-c", f"touch '{begun}'; sleep 20"], timeout=60)
    cutting.join(120)
    assert done.timed_out
    assert far.run(["echo", "again"], timeout=60).stdout == "again\n"


def test_no_server_is_unreachable_and_it_goes_on_when_it_is_back(far, server, tmp_path):
    far.run(["true"], timeout=60)
    server.stop(sessions=True)
    assert far.run(["true"], timeout=60).timed_out
    with pytest.raises(UnreachableError):
        far.read_many([str(tmp_path / "x")])
    server.start()
    assert far.run(["echo", "back"], timeout=60).stdout == "back\n"


def test_an_unknown_host_key_is_refused_with_what_to_do(far, server):
    (server.folder / "known_hosts").write_text("")
    with pytest.raises(HostKeyError, match=r"[Hh]ost key") as refused:
        far.read_many(["/x"])
    assert "fingerprint" in (refused.value.hint or "")


def test_a_key_that_is_not_taken_is_told_with_what_to_do(far, server):
    (server.folder / "authorized_keys").write_text("")
    with pytest.raises(LoginError, match=r"Permission denied|was refused") as refused:
        far.read_many(["/x"])
    by_hand = rf"open a connection first.*ssh -fNM .* -F {re.escape(str(server.config))} -- far`"  # with all options
    assert re.search(rf"{by_hand}|ssh-add -l", refused.value.hint or "")


def test_a_changed_host_key_is_refused(far, server):
    other = server.folder / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
    kind, key, *_ = other.with_suffix(".pub").read_text().split()
    (server.folder / "known_hosts").write_text(f"[127.0.0.1]:{server.port} {kind} {key}\n")
    shown = subprocess.run(
        ["ssh-keygen", "-l", "-f", server.folder / "host_key.pub"], capture_output=True, text=True, check=True
    )
    with pytest.raises(HostKeyError, match=r"the host key of far.* has changed: ") as refused:
        far.read_many(["/x"])
    assert shown.stdout.split()[1] in refused.value.message
    assert f"-R '[127.0.0.1]:{server.port}'" in refused.value.hint.replace('"', "'")


def host_key_line(server, names):
    kind, key, *_ = (server.folder / "host_key.pub").read_text().split()
    return f"{names} {kind} {key}\n"


def test_a_host_that_a_pattern_of_known_hosts_names_is_known(far, server):
    (server.folder / "known_hosts").write_text(host_key_line(server, f"[127.0.0.*]:{server.port}"))
    assert far.run(["echo", "in"], timeout=60).stdout == "in\n"


def test_a_revoked_host_key_is_refused(far, server):
    name = f"[127.0.0.1]:{server.port}"
    (server.folder / "known_hosts").write_text(host_key_line(server, name) + host_key_line(server, f"@revoked {name}"))
    with pytest.raises(HostKeyError, match=r"is revoked: |Host key verification failed"):
        far.read_many(["/x"])


OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGLwISveCsRlNuq3mo5mIRp33q1JaLPC1OSg8fECiU7M"
SECURITY_KEY = (  # of a kind that paramiko does not know
    "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIGLwISveCsRlNuq3mo5mIRp33q1JaLPC1OSg8fECiU7M"
    "AAAABHNzaDo="
)


@pytest.mark.parametrize(
    ("lines", "refused"),
    [
        ("127.0.0.1 KEY", None),
        ("127.0.0.* KEY", None),
        ("[127.0.0.1]:1 KEY", "is not known"),
        ("[127.0.0.1]:22 KEY", "is not known"),
        ("127.0.0.1 OTHER", "is not known"),
        ("127.0.0.1 OTHER\n127.0.0.1 KEY", None),
        ("127.0.0.1 KEY\n[127.0.0.1]:PORT OTHER", "has changed"),
        ("127.0.0.1 KEY\n[127.0.0.1]:PORT SECURITY", "is not known"),
        ("127.0.0.1 OTHER\n[127.0.0.1]:PORT KEY", None),
        ("127.0.0.1 KEY\n@revoked 127.0.0.1 KEY", "is not known"),
        ("127.0.0.1 KEY\n@revoked [127.0.0.1]:PORT KEY", "is revoked"),
        ("@cert-authority 127.0.0.1 KEY", "has an authority"),
    ],
)
def test_a_key_that_known_hosts_has_without_the_port_counts_as_ssh_says(far, server, site, lines, refused):
    key = host_key_line(server, "").strip()
    words = {"KEY": key, "OTHER": OTHER_KEY, "SECURITY": SECURITY_KEY, "PORT": str(server.port)}
    text = re.sub("|".join(words), lambda found: words[found[0]], lines)
    (server.folder / "known_hosts").write_text(f"{text}\n")
    if refused is None:
        assert far.run(["echo", "in"], timeout=60).stdout == "in\n"
        return
    with pytest.raises(HostKeyError) as error:
        far.read_many(["/x"])
    if site["transport"]["kind"] == "ssh":  # the other is your ssh, which refuses the same
        assert refused in error.value.message
        shown = subprocess.run(
            ["ssh-keygen", "-l", "-f", server.folder / "host_key.pub"], capture_output=True, text=True, check=True
        )
        assert shown.stdout.split()[1] in error.value.message


def test_under_an_alias_the_name_without_the_port_does_not_count(far, server):
    server.config.write_text(server.config.read_text() + "  HostKeyAlias box\n")
    (server.folder / "known_hosts").write_text(host_key_line(server, "127.0.0.1"))
    with pytest.raises(HostKeyError):
        far.read_many(["/x"])
    (server.folder / "known_hosts").write_text(host_key_line(server, "box"))
    assert far.run(["echo", "in"], timeout=60).stdout == "in\n"


def test_a_known_key_without_the_port_changes_no_choice_of_kind(far, server):
    """ssh orders the kinds that it asks for by the name with the port alone, and gets the key that is not known."""
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", server.folder / "rsa"], check=True)
    server.stop(sessions=True)
    server.more = f"HostKey {server.folder}/rsa"
    server.start()
    kind, key, *_ = (server.folder / "rsa.pub").read_text().split()
    (server.folder / "known_hosts").write_text(f"127.0.0.1 {kind} {key}\n")
    with pytest.raises(HostKeyError):
        far.read_many(["/x"])


def test_an_ssh_keygen_that_hangs_is_an_error_with_what_to_do(server, tmp_path, monkeypatch):
    (tmp_path / "ssh-keygen").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "ssh-keygen").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("nsw.transport.ssh_login._KEYGEN_S", 0.2)
    site = {"transport": {"kind": "ssh", "host": "far", "config": str(server.config)}}
    with pytest.raises(UnreachableError, match=r"ssh-keygen -F .* gave no answer") as error:
        connect(site, None).read_many(["/x"])
    assert "file system may hang" in error.value.hint


@pytest.mark.parametrize("site", ["ssh"], indirect=True)
def test_a_key_that_only_an_authority_could_vouch_for_is_refused_and_openssh_named(far, server):
    (server.folder / "known_hosts").write_text(host_key_line(server, "@cert-authority *"))
    with pytest.raises(HostKeyError, match="has an authority that signs keys of hosts") as refused:
        far.read_many(["/x"])
    assert "kind: openssh" in refused.value.hint


@pytest.mark.parametrize("plain", [True, False])
def test_known_hosts_is_read_without_ssh_on_this_machine_too(server, tmp_path, monkeypatch, plain):
    name, file = f"[127.0.0.1]:{server.port}", server.folder / "known_hosts"
    if not plain:
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", file], check=True, capture_output=True)
    file.write_text(file.read_text() + "# a remark\n\n" + host_key_line(server, f"@revoked other,{name}"))
    with_ssh = known_keys_of_host(name, [str(file)])
    with monkeypatch.context() as context:
        context.setenv("PATH", str(tmp_path))
        without = known_keys_of_host(name, [str(file)])
    assert [len(with_ssh.good), len(with_ssh.revoked), with_ssh.has_authority] == [1, 1, False]
    assert (without.good, without.revoked) == (with_ssh.good, with_ssh.revoked)
    assert known_keys_of_host("[127.0.0.1]:1", [str(file)]).good == ()


@pytest.mark.parametrize("kind", ["openssh", "ssh"])
@pytest.mark.parametrize(
    ("shell", "said"),
    [
        ('/bin/rbash -c "$SSH_ORIGINAL_COMMAND"', "exec: restricted"),
        (
            "/bin/sh -c 'echo This account is currently not available.; exit 1'",
            "This account is currently not available.",
        ),
    ],
)
def test_a_login_shell_that_starts_no_bash_is_told_with_what_it_said(tmp_path, kind, shell, said):
    if SSHD is None or os.geteuid() != 0:
        pytest.skip("no sshd, or not root")
    other = Server(tmp_path / "restricted", more=f"ForceCommand {shell}")
    other.start()
    try:
        transport = connect({"transport": {"kind": kind, "host": "far", "config": str(other.config)}}, "/scratch")
        with pytest.raises(UnreachableError) as refused:
            transport.read_many(["/x"])
        assert "its login shell did not start bash (exit status 1)" in refused.value.message
        assert said in refused.value.message
        assert "ask the site's support for a login shell" in refused.value.hint
    finally:
        other.stop(sessions=True)


@pytest.mark.parametrize("kind", ["openssh", "ssh"])
def test_a_jump_host_on_the_way_is_passed(server, tmp_path, kind):
    jump = Server(tmp_path / "jump", more=f"PermitOpen 127.0.0.1:{server.port}\nForceCommand /bin/false")
    jump.start()
    try:
        text = jump.config.read_text().replace("Host far", "Host bastion") + server.config.read_text()
        server.config.write_text(text + "  ProxyJump bastion\n")
        site = {"transport": {"kind": kind, "host": "far", "config": str(server.config)}}
        transport = connect(site, str(tmp_path / "scratch"))
        assert transport.run(["echo", "through"], timeout=60).stdout == "through\n"
        transport.stage([(server.config, str(tmp_path / "there" / "config"))])
        assert (tmp_path / "there" / "config").read_text() == server.config.read_text()
        transport.close()
        assert jump.logins() >= 1
    finally:
        jump.stop(sessions=True)


@pytest.mark.parametrize("kind", ["openssh", "ssh"])
def test_jump_hosts_in_a_row_are_passed(server, tmp_path, kind):
    inner = Server(tmp_path / "inner", more=f"PermitOpen 127.0.0.1:{server.port}\nForceCommand /bin/false")
    inner.start()
    outer = Server(tmp_path / "outer", more=f"PermitOpen 127.0.0.1:{inner.port}\nForceCommand /bin/false")
    outer.start()
    try:
        hosts = {"outer": outer, "inner": inner, "far": server}
        text = "".join(one.config.read_text().replace("Host far", f"Host {name}") for name, one in hosts.items())
        server.config.write_text(text + "  ProxyJump outer,inner\n")
        transport = connect({"transport": {"kind": kind, "host": "far", "config": str(server.config)}}, None)
        assert transport.run(["echo", "through both"], timeout=60).stdout == "through both\n"
        transport.close()
        assert [one.logins() >= 1 for one in hosts.values()] == [True, True, True]
    finally:
        outer.stop(sessions=True)
        inner.stop(sessions=True)


def test_a_command_of_a_killed_nsw_is_known_by_its_lock(far, site, tmp_path):
    assert not far.left_running()
    other = connect(site, str(tmp_path / "scratch of a campaign"))
    assert other.left_running()
    far.close()
    deadline = time.monotonic() + 120
    while other.left_running():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    other.close()
