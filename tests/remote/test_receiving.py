"""Downloads over a real sshd: progress, a partial name, resumed after a cut, and what a far side does that cheats."""

import errno
import os

import pytest

from nsw.errors import CampaignError, CommandError, DownloadLimitError, UnreachableError
from nsw.transport import remote
from nsw.transport.shell import ConnectionLostError

SIZE = 3_000_000


class Cut:
    """A way whose connections end after so many bytes, one after another; then it is whole. It counts bytes."""

    def __init__(self, way, *after):
        self.way, self.after, self.received = way, list(after), []

    def open(self, command):
        pipe = self.way.open(command)
        left = self.after.pop(0) if self.after else None
        self.received.append(0)
        receive = pipe.receive

        def cut(most, timeout):
            if left is not None and self.received[-1] >= left:
                pipe.kill()
                raise ConnectionLostError("cut")
            data = receive(most if left is None else min(most, left - self.received[-1]), timeout)
            self.received[-1] += len(data)
            return data

        pipe.receive = cut
        return pipe

    def close(self):
        self.way.close()


@pytest.fixture
def sent(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "large").write_bytes(os.urandom(SIZE))
    (folder / "small").write_bytes(b"small")
    return folder


def places(sent, here, *names):
    return [(str(sent / name), here / name) for name in names]


def test_a_download_is_resumed_after_each_cut_behind_what_came(far, sent, tmp_path):
    far._sleep = lambda _s: None
    far._connection = way = Cut(far._connection, 1_000_000, 700_000)
    seen = []
    far.progress = lambda done, total: seen.append((done, total))
    far.get_many(places(sent, tmp_path / "here", "small", "large"))
    assert (tmp_path / "here/large").read_bytes() == (sent / "large").read_bytes()
    assert (tmp_path / "here/small").read_bytes() == b"small"
    assert not list((tmp_path / "here").glob("*.part"))
    assert len(way.received) == 3
    assert sum(way.received) < SIZE + 20_000  # nothing comes twice
    assert seen[-1] == (SIZE + 5, SIZE + 5)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_later_nsw_goes_on_behind_what_an_earlier_one_left(far, sent, tmp_path):
    far._sleep = lambda _s: None
    far._connection = way = Cut(far._connection, 900_000, 0, 0, 0)
    wanted = places(sent, tmp_path, "large")
    with pytest.raises(UnreachableError, match="files cannot be downloaded: cut"):
        far.get_many(wanted)
    part = tmp_path / "large.part"
    assert 0 < part.stat().st_size < SIZE
    assert not (tmp_path / "large").exists()
    way.received.clear()
    far.get_many(wanted)
    assert (tmp_path / "large").read_bytes() == (sent / "large").read_bytes()
    assert sum(way.received) < SIZE - 800_000


def test_a_partial_file_of_other_content_is_found_by_its_hash_and_the_next_try_begins_anew(far, sent, tmp_path):
    (tmp_path / "large.part").write_bytes(b"x" * 1000)
    wanted = places(sent, tmp_path, "large")
    with pytest.raises(CommandError, match="large changed during the download, or arrived damaged"):
        far.get_many(wanted)
    assert not (tmp_path / "large").exists()
    far.get_many(wanted)
    assert (tmp_path / "large").read_bytes() == (sent / "large").read_bytes()


def test_a_link_in_the_place_of_the_partial_file_is_not_written_through(far, sent, tmp_path):
    (tmp_path / "mine").write_text("precious")
    (tmp_path / "small.part").symlink_to(tmp_path / "mine")
    far.get_many(places(sent, tmp_path, "small"))
    assert (tmp_path / "mine").read_text() == "precious"
    assert (tmp_path / "small").read_bytes() == b"small"


def test_a_full_disk_here_is_an_error_that_names_the_file_and_nothing_has_its_name(far, sent, tmp_path, monkeypatch):
    def full(_descriptor, _data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(remote, "_write_all", full)
    with pytest.raises(CampaignError, match=r"large cannot be written here: No space left"):
        far.get_many(places(sent, tmp_path, "large"))
    assert not (tmp_path / "large").exists()


def test_strange_names_come_as_they_are(far, sent, tmp_path):
    names = ["a\nb", "back\\slash", "- dash", "*", "späce ü"]
    for name in names:
        (sent / name).write_text(name)
    far.get_many([(str(sent / name), tmp_path / f"n{n}") for n, name in enumerate(names)])
    assert [(tmp_path / f"n{n}").read_text() for n in range(len(names))] == names


@pytest.mark.parametrize(
    ("missing", "is_fast", "expected"),
    [
        ((), True, "sha256"),
        ((), False, "blake2b"),
        (("openssl",), True, "blake2b"),
        (("sha_ni",), True, "blake2b"),
        (("b2sum",), False, "sha256"),
        (("b2sum", "openssl"), False, "sha256"),
    ],
)
def test_the_hash_is_what_both_sides_have_and_compute_fastest(
    far, sent, tmp_path, monkeypatch, missing, is_fast, expected
):
    script = remote._GET.replace("/proc/cpuinfo", str(tmp_path / "cpuinfo"))
    (tmp_path / "cpuinfo").write_text("flags : fpu sha_ni aes\n" if "sha_ni" not in missing else "flags : fpu aes\n")
    for name in missing:
        script = script.replace(f"command -v {name} ", f"command -v {name}-of-2016 ")
    monkeypatch.setattr(remote, "_GET", script)
    monkeypatch.setattr(remote, "sha256_is_fast", lambda: is_fast)
    used = []
    for name, make in dict(remote._HASHES).items():
        monkeypatch.setitem(remote._HASHES, name, lambda name=name, make=make: used.append(name) or make())
    (sent / "a\nb").write_text("x")
    far.get_many([*places(sent, tmp_path / "here", "large", "small"), (str(sent / "a\nb"), tmp_path / "here" / "ab")])
    assert (tmp_path / "here/large").read_bytes() == (sent / "large").read_bytes()
    assert used == [expected] * 3


@pytest.mark.parametrize(
    ("lie", "match"),
    [
        (r"printf 'regular file\t5\t/etc/passwd\0'", "sent what was not asked for"),
        (r"printf 'symbolic link\t5\t%s\0' ", "sent what was not asked for"),
        (
            r"printf 'regular file\t99999999999\t%s\0' ",
            "93.13 GiB would be downloaded, but limits.download leaves 1.00 GiB",
        ),
        (r"head -c 200000000 /dev/zero | tr '\0' x", "announces no files"),
    ],
)
def test_a_far_side_that_cheats_ends_the_transfer_and_writes_nothing(far, sent, tmp_path, monkeypatch, lie, match):
    name = str(sent / "small")
    monkeypatch.setattr(remote, "_GET", f"{lie.replace('%s', name)}; cat >/dev/null")
    with pytest.raises((UnreachableError, DownloadLimitError), match=match):
        far.get_many([(name, tmp_path / "here" / "small")])
    assert not (tmp_path / "here").exists()
