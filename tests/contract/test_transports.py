"""What every transport promises (nsw/transport/model.py): this machine, nsw's own ssh, the user's, and `far`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from nsw.errors import CommandError
from nsw.transport.model import connect
from tests.far import far_nsw
from tests.far.place import USER, Far, folder_of_both, make_user, missing
from tests.remote.conftest import server  # noqa: F401  a fixture: a real sshd

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nsw.transport.model import Transport

ODD = "odd 'name\" $x\n.txt"


@pytest.fixture(params=["local", "ssh", "openssh", "far"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(kind: str, tmp_path: Path) -> Iterator[Path]:
    """A folder that this machine and the site both write in."""
    if kind != "far":
        yield tmp_path
        return
    if (why := missing()) is not None:
        pytest.skip(why)
    make_user()
    with folder_of_both() as folder:
        yield folder


@pytest.fixture
def transport(request: pytest.FixtureRequest, kind: str, place: Path) -> Iterator[Transport]:
    scratch, mark = str(place / "scratch of a campaign"), place / "mark"
    if kind == "far":
        site = {"transport": {"kind": "far", "host": USER, "config": str(Far(place).control)}}
        made: Transport = far_nsw.connect(site, scratch, mark)
    else:
        site = {"transport": {"kind": kind}}
        if kind != "local":
            host = request.getfixturevalue("server")
            site["transport"] |= {"host": "far", "config": str(host.config)}
        made = connect(site, scratch, mark)
    yield made
    made.close()
    far_nsw.end_all()


def test_a_command_gets_its_words_and_its_standard_input_and_gives_all_it_wrote(transport, place):
    script = 'cat; printf "%s|" "$@" >&2; exit 7'
    done = transport.run(["bash", "-c", script, "nsw", "a b", "$x", ODD, ""], timeout=60, cwd=str(place), stdin=b"in\n")
    assert (done.returncode, done.stdout, done.stderr) == (7, "in\n", f"a b|$x|{ODD}||")
    assert not done.timed_out


def test_what_does_not_exist_is_a_result_and_no_exception(transport):
    done = transport.run(["no-such-command-of-nsw"], timeout=60)
    assert done.returncode == 127
    assert not done.timed_out


def test_several_commands_have_a_result_each_whatever_the_first_does(transport):
    done = transport.run_many([["false"], ["echo", "2"], ["bash", "-c", "exit 3"]], timeout=60)
    assert [(one.returncode, one.stdout) for one in done] == [(1, ""), (0, "2\n"), (3, "")]


def test_a_command_that_is_too_slow_ends_with_what_it_started_and_nobody_knows_what_it_did(transport, place):
    done = transport.run(["bash", "-c", f"sleep 300 & echo $! >'{place}/pid'; wait"], timeout=1)
    assert done.timed_out
    assert transport.run(["echo", "on"], timeout=60).stdout == "on\n"


def test_a_file_has_contents_or_is_absent_and_a_folder_has_none(transport, place):
    (place / ODD).write_bytes(b"\0" * 10)
    (place / "folder").mkdir()
    there, absent, folder = (str(place / name) for name in (ODD, "absent", "folder"))
    found = transport.read_many([there, absent, folder], 4)
    assert (found[there], found[absent]) == (b"\0" * 4, None)
    assert not isinstance(found[folder], bytes)  # absent on this machine, unreadable elsewhere: it is no file
    assert transport.read_many([]) == {}
    assert transport.tail(there, 3) == b"\0" * 3
    assert transport.tail(absent, 3) is None


def test_listings_have_plain_files_only_and_an_absent_folder_is_empty(transport, place):
    folder = place / "some folder"
    folder.mkdir()
    (folder / "a.rep").write_bytes(b"12")
    (folder / "b.txt").touch()
    (folder / "c.rep").symlink_to("/etc/passwd")
    os.mkfifo(folder / "d.rep")
    listed = transport.list_many({str(folder): ["*.rep"], str(place / "absent"): ["*"]})
    assert [(one.name, one.size) for one in listed[str(folder)]] == [("a.rep", 2)]
    assert listed[str(place / "absent")] == []


def test_files_are_staged_with_their_permissions_and_come_back_whole(transport, place):
    here = place / "here.sh"
    here.write_bytes(b"#!/bin/sh\necho staged\n" + b"\0\xff" * 5000)
    here.chmod(0o750)
    there = str(place / "over there" / "run.sh")
    transport.make_folders([str(place / "over there")] * 2)
    transport.stage([(here, there)])
    transport.stage([(here, there)])
    back = place / "back" / "again.sh"
    shown = transport.show(here, there)
    transport.get_many([(shown, back)])
    assert back.read_bytes() == here.read_bytes()
    assert transport.run(["stat", "-c", "%a", shown], timeout=60).stdout == "750\n"


def test_what_cannot_be_made_or_fetched_is_an_error_of_that_command(transport, place):
    (place / "file").touch()
    with pytest.raises(CommandError):
        transport.make_folders([str(place / "file" / "below")])
    with pytest.raises(CommandError):
        transport.get_many([(str(place / "absent"), place / "x")])


def test_paths_are_expanded_over_there(transport):
    home = transport.run(["bash", "-c", "echo $HOME"], timeout=60).stdout.strip()
    assert transport.expand("~/a") == transport.expand("$HOME/a") == transport.expand("${HOME}/a") == f"{home}/a"


def test_a_name_that_is_not_utf8_is_listed_read_brought_and_sent(transport, place):
    name = os.fsdecode(b"bad\xff\xfe.txt")
    folder, copies = place / "odd names", place / "copies"
    folder.mkdir()
    copies.mkdir()
    (folder / name).write_text("x" * 10)
    there = f"{folder}/{name}"
    assert [entry.name for entry in transport.list_many({str(folder): ["*"]})[str(folder)]] == [name]
    assert transport.read_many([there]) == {there: b"x" * 10}
    assert transport.tail(there, 3) == b"xxx"
    transport.get_many([(there, copies / name)])
    assert (copies / name).read_text() == "x" * 10
    transport.stage([(copies / name, f"{place}/sent/{name}")])
    assert transport.read_many([f"{place}/sent/{name}"]) == {f"{place}/sent/{name}": b"x" * 10}
    assert transport.run(["cat", there], timeout=60).stdout == "x" * 10
    transport.make_folders([f"{place}/made{name}"])
    assert (place / f"made{name}").is_dir()
