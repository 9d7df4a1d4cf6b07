"""This machine as a site: files arrive whole, once, and without leftovers."""

import errno

from nsw.transport.local import LocalTransport


def test_a_file_that_was_brought_already_is_brought_again_without_a_trace(tmp_path):
    source, target = tmp_path / "there", tmp_path / "here" / "stdout"
    source.write_text("said")
    for _ in range(2):  # the second time both are links to one file, of which rename would leave both names
        LocalTransport().get_many([(str(source), target)])
    assert [p.name for p in target.parent.iterdir()] == ["stdout"]
    assert target.read_text() == "said"


def test_a_file_is_copied_through_no_name_that_a_neighbour_can_guess(tmp_path, monkeypatch):
    source, target, precious = tmp_path / "there", tmp_path / "here" / "stdout", tmp_path / "precious"
    source.write_text("new")
    precious.write_text("mine")
    target.parent.mkdir()
    for name in ("stdout.part", ".stdout.part"):
        target.with_name(name).symlink_to(precious)

    def link(*_):
        raise OSError(errno.EXDEV, "another file system")

    monkeypatch.setattr("os.link", link)
    LocalTransport().get_many([(str(source), target)])
    assert (target.read_text(), precious.read_text()) == ("new", "mine")
