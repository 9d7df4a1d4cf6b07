"""The one way in which a scheduler's commands are run: with a timeout, counted, again after faults of the moment."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsw.errors import CommandError, HostKeyError, LoginError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.errors import CommandResult
    from nsw.transport.fence import Fence
    from nsw.transport.model import Transport


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a command is tried and how long is waited in between (seconds, doubling, with jitter)."""

    tries: int = 1
    first_s: float = 1.0
    most_s: float = 30.0

    def pause(self, tried: int, random: float) -> float:
        """Seconds to wait after so many tries; `random` is in 0..1."""
        return min(self.most_s, self.first_s * 2.0 ** (tried - 1)) * (0.5 + random)


ONCE = Retry()
PATIENT = Retry(tries=4)


class Runner:
    """Runs commands over a transport.

    Args:
        transport: The way to the site.
        transient: Tells of a result whether it is a fault of the moment.
        plain: Leaves out of a result what says nothing.
        without: Beginnings of names of environment variables that no command may see.
        keep: Names among those that it may.
        fence: Around commands that change something, where an nsw elsewhere may take the campaign over.
        sleep: Waits; tests hand in their own, as for `draw`, which gives numbers in 0..1.
        draw: Randomness of the pauses.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        transient: Callable[[CommandResult], bool],
        plain: Callable[[CommandResult], CommandResult] = lambda result: result,
        without: Sequence[str] = (),
        keep: Sequence[str] = (),
        fence: Fence | None = None,
        sleep: Callable[[float], object] = time.sleep,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._transport = transport
        self._transient = transient
        self._plain = plain
        self._without = tuple(without)
        self._keep = tuple(keep)
        self._fence = fence
        self._sleep = sleep
        self._draw = draw
        self.calls: Counter[str] = Counter()

    def run(self, argv: Sequence[str], *, timeout: float, retry: Retry = ONCE, changes: bool = False) -> CommandResult:
        """Run a command; after a fault of the moment again, as often as `retry` says.

        Returns:
            What it did at last, good or bad.

        Raises:
            FencedError: It `changes` something, and another nsw owns the campaign.
        """
        tried = 0
        while True:
            self.calls[argv[0]] += 1
            (result,) = self._results([argv], timeout, changes=changes)
            tried += 1
            # whoever is refused would be asked for another code, and locked out in the end
            refused = isinstance(result.unreachable, (HostKeyError, LoginError))
            if tried >= retry.tries or refused or not self._transient(result):
                return result
            self._sleep(retry.pause(tried, self._draw()))

    def run_many(
        self, commands: Sequence[Sequence[str]], *, timeout: float, counted: str, changes: bool = False
    ) -> list[CommandResult]:
        """Run commands once each, in one round trip; they count as calls of `counted`.

        Raises:
            FencedError: They `change` something, and another nsw owns the campaign.
        """
        self.calls[counted] += len(commands)
        return self._results(commands, timeout, changes=changes)

    def _results(self, commands: Sequence[Sequence[str]], timeout: float, *, changes: bool) -> list[CommandResult]:
        fence = self._fence if changes else None
        sent = [fence.around(argv) for argv in commands] if fence else commands
        if len(sent) == 1:
            found = [self._transport.run(sent[0], timeout=timeout, without=self._without, keep=self._keep)]
        else:
            found = self._transport.run_many(sent, timeout=timeout, without=self._without, keep=self._keep)
        if fence:
            found = [fence.passed(*one) for one in zip(commands, found, strict=True)]
        return [self._plain(one) for one in found]

    def need(self, argv: Sequence[str], *, timeout: float, what: str, retry: Retry = ONCE) -> CommandResult:
        """As `run`, for a command that must succeed.

        Raises:
            CommandError: It did not; the error holds all that it said.
        """
        result = self.run(argv, timeout=timeout, retry=retry)
        if result.returncode != 0 or result.timed_out:
            raise CommandError(result, what=what)
        return result
