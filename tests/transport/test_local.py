"""This machine as a site: files arrive whole, once, and without leftovers."""

from nsw.transport.local import LocalTransport


def test_a_file_that_was_brought_already_is_brought_again_without_a_trace(tmp_path):
    source, target = tmp_path / "there", tmp_path / "here" / "stdout"
    source.write_text("said")
    for _ in range(2):  # the second time both are links to one file, of which rename would leave both names
        LocalTransport().get_many([(str(source), target)])
    assert [p.name for p in target.parent.iterdir()] == ["stdout"]
    assert target.read_text() == "said"


def test_what_an_earlier_try_left_is_no_hindrance(tmp_path):
    source, target = tmp_path / "there", tmp_path / "here" / "stdout"
    source.write_text("new")
    target.parent.mkdir()
    target.with_name("stdout.part").write_text("half")
    LocalTransport().get_many([(str(source), target)])
    assert [p.name for p in target.parent.iterdir()] == ["stdout"]
    assert target.read_text() == "new"
