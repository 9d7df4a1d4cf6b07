"""Stages on the fake PBS: what a case's first run decides reaches the job of its second one."""

from __future__ import annotations

from nsw.engine.builds import Builds
from nsw.engine.driven import DrivenCampaign
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import SCRATCH
from nsw.engine.loop import Driver
from nsw.schedulers.batch import BatchScheduler, Limits
from nsw.schedulers.pbs import Pbs as Adapter
from nsw.scripts import render
from nsw.transport.local import LocalTransport
from tests.campaign import test_stages as local
from tests.campaign.stand_ins import Fed


class Campaign(local.Campaign):
    """The same, its jobs handed to PBS."""

    def open(self):
        self.ledger = Ledger(self.folder.ledger)
        scratch, transport = self.ledger.meta(SCRATCH), LocalTransport()
        scheduler = BatchScheduler(Adapter(), transport, scratch, self.folder.id, Limits())
        it = DrivenCampaign(self.folder, self.ledger, scheduler, transport, scratch)
        stages = Fed(it, self.read, self.choose)
        self.builds = Builds(it)
        self.driver = Driver(it, stages=stages)
        self.builds.prepare()
        self.driver.recover()


def for_pbs(plan, job, *, scheduler, campaign, scratch):
    assert scheduler == "local"
    lines = Adapter().directives(job, scratch)
    return render.render_job(plan, job, scheduler="pbs", campaign=campaign, scratch=scratch,
                             directives=lines, restarts=Adapter.capabilities.restarts)  # fmt: skip


def test_the_second_stage_gets_what_the_first_one_decided(pbs, tmp_path, monkeypatch):
    for name, value in pbs.double.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(pbs.work)
    monkeypatch.setattr(local, "render_job", for_pbs)
    runs = [run for case in local.CASES for run in (local.first(case), local.second(case))]
    it = Campaign(tmp_path / "campaigns", runs, local.what_it_saw(tmp_path))
    it.driver.run(0.05)
    assert set(it.states().values()) == {"done"}
    assert it.output("n-2.measure.r1") == "--for=n-2.measure.r1\na b'c$(d)\nend\n"
    assert len(pbs.double.control("_jobs")["jobs"]) >= 2
    it.ledger.close()
