"""What time and people do to a campaign on PBS and Cobalt: wrappers that submit twice, stale lists, tasks deleted by hand."""

from __future__ import annotations

from tests.far.forked import ended
from tests.far.staged import Staged

from .distant import distant
from .systems import DOUBLES, REMOTE, ways
from .test_site import until

EVERYWHERE = {"systems": DOUBLES, "kinds": ("local", *REMOTE)}
SUBMITS_TWICE = '"$REAL" "$@" >/dev/null'  # before the submission that counts


@ways("pbs-openssh", "cobalt-local", **EVERYWHERE)
def test_a_wrapper_that_submits_twice_has_each_program_begin_once(system, tmp_path, kind):
    with distant(kind, system) as it:
        it.plan(system.submits, *[SUBMITS_TWICE] * 4)
        campaign = Staged(tmp_path / "campaigns", it.site())
        campaign.finish()
        assert campaign.fault() is None, campaign.fault()
        assert system.tasks(campaign.folder.id) > len(campaign.runs)


@ways("pbs-local", "cobalt-ssh", **EVERYWHERE)
def test_a_list_without_jobs_that_run_for_a_while_loses_none_of_them(system, tmp_path, kind):
    with distant(kind, system) as it:
        campaign = Staged(tmp_path / "campaigns", it.site(), body=f"until [ -e {it.folder}/go ]; do sleep 0.1; done")
        process = campaign.start()
        until(lambda: len(campaign.begun()) == 2)
        it.plan(system.lists, *[system.gone] * 6)
        until(lambda: it.planned().count(system.gone) == 6)
        (it.folder / "go").touch()
        assert ended(process) == 0
        assert campaign.fault() is None, campaign.fault()
        assert system.tasks(campaign.folder.id) == len(campaign.runs)


@ways("pbs-ssh", "cobalt-local", **EVERYWHERE)
def test_a_run_that_nsw_gave_up_as_lost_and_that_ended_well_is_believed_by_the_next(system, tmp_path, kind):
    with distant(kind, system) as it:
        body = f"until [ -e {it.folder}/go ]; do sleep 0.1; done"
        campaign = Staged(tmp_path / "campaigns", it.site(), cases=1, body=body, lost_after_s=20, time_s=1500)
        process = campaign.start()
        until(campaign.begun)
        it.plan(system.lists, *[system.gone] * 1000)
        assert ended(process) == 0
        look, measure = campaign.states().values()
        assert look[0] == "lost", look
        assert "skipped" in measure[1]
        it.plan(system.lists)
        (it.folder / "go").touch()
        until(lambda: any(it.scratch.rglob("attempt-1/status")))
        campaign.finish()
        assert campaign.states()["n-1.look.r1"][0] == "done"
        campaign.again()
        campaign.finish()
        assert campaign.fault() is None, campaign.fault()
        assert system.tasks(campaign.folder.id) == len(campaign.runs)


@ways("pbs-local", "cobalt-openssh", **EVERYWHERE)
def test_a_waiting_task_that_a_person_deletes_stays_deleted_until_it_is_retried(system, tmp_path, kind):
    system.hold()
    with distant(kind, system) as it:
        campaign = Staged(tmp_path / "campaigns", it.site())
        process = campaign.start()
        until(lambda: {state for state, _ in campaign.states().values()} == {"queued", "planned"})
        system.delete_first()
        until(lambda: "cancelled" in {state for state, _ in campaign.states().values()})
        system.release()
        assert ended(process) == 0
        states = campaign.states()
        assert states["n-1.look.r1"][0] == "cancelled", states
        assert "skipped" in states["n-1.measure.r1"][1]
        assert states["n-2.measure.r1"][0] == "done"
        assert campaign.begun() == ["n-2.look", "n-2.measure"]
        campaign.again()
        campaign.finish()
        assert campaign.fault() is None, campaign.fault()
