"""The commands of docs/tutorial.md that need neither GPU nor cluster work, and print the words that it shows."""

from tests.demo.pages import compared_lines


def test_what_the_tutorial_shows_is_what_a_reader_sees(tmp_path):
    assert compared_lines("tutorial.md", tmp_path) > 20
