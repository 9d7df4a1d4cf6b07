"""What nsw parses is UTF-8 or an error that names the file; what people read shows other bytes as they are."""

import pytest

from nsw.engine.collect import error_line, parse_status
from nsw.engine.folder import CampaignFolder
from nsw.engine.recipe_lock import locked_text
from nsw.errors import CampaignError


def test_a_lockfile_that_is_not_utf8_is_an_error_that_names_it(tmp_path):
    folder = CampaignFolder(tmp_path / "c")
    folder.path.mkdir()
    folder.recipe.write_bytes(b"nsw: 1\nname: caf\xe9\n")
    with pytest.raises(CampaignError, match=r"recipe\.lock\.yaml is not UTF-8: byte 16 is 0xe9"):
        locked_text(folder)


def test_odd_bytes_of_a_message_are_shown():
    assert error_line(b"Error: caf\xe9\n") == r"Error: caf\xe9"
    status = parse_status(b"state=failed\nhost=n\xff1\nreason=caf\xe9\n")
    assert (status.host, str(status.reason)) == (r"n\xff1", r"caf\xe9")
