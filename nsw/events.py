"""What happens while a campaign goes on, as `nsw.run` and its like give it: `match` tells the classes apart."""

from nsw.engine.events import (
    BuildChanged,
    Downloading,
    Event,
    Finished,
    Message,
    Progress,
    ReportsRead,
    RunChanged,
    RunsEnded,
    Started,
)

__all__ = [
    "BuildChanged", "Downloading", "Event", "Finished", "Message", "Progress", "ReportsRead", "RunChanged", "RunsEnded",
    "Started",
]  # fmt: skip
