"""Parts of the loop with a test's own answers in place of what they would read from reports."""

from types import SimpleNamespace

from nsw.engine.stages import Canary, Chooser, Stages


class Fed(Stages):
    """Stages that read and choose with functions of the test."""

    def __init__(self, it, read, choose, *more):
        super().__init__(it, *more)
        self.read, self.choose = read, choose


class Judged(Canary):
    """A canary of which a function of the test says what is wrong."""

    def __init__(self, it, fault=lambda _run: None):
        super().__init__(it if hasattr(it, "ledger") else SimpleNamespace(ledger=it))
        self.fault = fault


class Met(Chooser):
    """Chooses by what the jobs met according to the test; `said` and `warned` are what people are told."""

    def __init__(self, folder, ledger, basis):
        self.said, self.warned = [], []
        super().__init__(SimpleNamespace(folder=folder, ledger=ledger, say=self.said.append, warn=self.warned.append))
        self.current_basis = lambda: basis
