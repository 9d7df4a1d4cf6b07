"""The files that a command needs, where a stranger wrote them."""

import pytest

from nsw.recipe.program import files_of


@pytest.mark.parametrize(
    "text", ["-" * 900_000 + "1", "not " * 200_000 + "1", "1" + "+1" * 400_000, "(" * 900_000, "\x00"], ids=range(5)
)
def test_a_script_that_python_cannot_parse_needs_no_more_files(tmp_path, text):
    (tmp_path / "a.py").write_text(text)
    assert files_of(["python", "a.py"], tmp_path) == ["a.py"]
