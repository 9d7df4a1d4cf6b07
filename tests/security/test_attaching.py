"""`nsw attach` where several users share the scratch folder of a site: campaigns of others are neither listed nor taken."""

import os
import sys
from pathlib import Path

import pytest

from nsw.engine.handover import ARCHIVE, pack

CAMPAIGN = "t-20260101-000000-aaaa"
LIST = """
import sys
from nsw.campaign.attach import attachable
from nsw.transport.local import LocalTransport
print([one.id for one in attachable(LocalTransport(), sys.argv[1])])
"""
TAKE = """
import sys
from nsw.errors import NswError
from nsw.transport.commands import take_ownership
from nsw.transport.local import LocalTransport
try:
    print("taken", take_ownership(LocalTransport(), sys.argv[1], "c", "0 aa", "*", "me@here"))
except NswError as fault:
    print(fault.message)
"""


@pytest.fixture
def shared(users) -> Path:
    """A scratch folder in which everybody may make folders, as /tmp."""
    folder = users["victim"].home.parent / "scratch"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def planted(shared, user, campaign=CAMPAIGN, owner="1 aa\nme@here\n") -> Path:
    folder = shared / campaign
    (folder / ARCHIVE).parent.mkdir(parents=True)
    (folder / ARCHIVE).write_bytes(pack(b"ledger", b"recipe"))
    (folder / "owner").write_text(owner)
    for path in (folder, (folder / ARCHIVE).parent):
        path.chmod(0o755)
    return user.owns(folder)


def test_only_own_campaigns_are_listed_and_no_file_of_another_user_is_waited_for(shared, victim, neighbour):
    planted(shared, victim)
    other = planted(shared, neighbour, "t-20260101-000001-bbbb")
    (other / "owner").unlink()
    os.mkfifo(other / "owner")
    neighbour.owns(other)
    (shared / "t-20260101-000002-cccc").symlink_to(other)
    done = victim.run(sys.executable, "-P", "-c", LIST, shared)
    assert done.stdout.strip() == str([CAMPAIGN]), done.stderr


@pytest.mark.parametrize("what", ["arithmetic", "link", "lock"])
def test_a_campaign_of_another_user_is_not_taken_over_and_nothing_in_it_is_opened(shared, victim, neighbour, what):
    (dear := victim.home / "dear").write_text("dear")
    victim.owns(dear)
    run = f"a[$(touch${{IFS}}{victim.home}/PWNED)]"
    folder = planted(shared, neighbour, owner=f"{run} aa\nme@here\n" if what == "arithmetic" else "1 aa\n")
    folder.chmod(0o777)
    if what != "arithmetic":
        (folder / {"link": "owner.new", "lock": "owner.lock"}[what]).symlink_to(
            dear if what == "link" else victim.home / "PWNED"
        )
        neighbour.owns(folder)
    done = victim.run(sys.executable, "-P", "-c", TAKE, folder)
    assert "belongs to another user" in done.stdout, done
    assert [p.name for p in victim.home.iterdir()] == ["dear"]
    assert dear.read_text() == "dear"


def test_an_owner_file_is_no_arithmetic(shared, victim):
    folder = planted(shared, victim, owner=f"a[$(touch${{IFS}}{victim.home}/PWNED)] aa\n")
    done = victim.run(sys.executable, "-P", "-c", TAKE, folder)
    assert done.stdout == "taken 1 aa\n", done.stderr
    assert list(victim.home.iterdir()) == []
