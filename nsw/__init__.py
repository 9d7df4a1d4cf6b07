"""nsw: GPU profiling campaigns on clusters, from a recipe to an answer with evidence."""

from nsw.safe_path import leave_folder_of_module

leave_folder_of_module()  # before any other import

from typing import TYPE_CHECKING, Any  # noqa: E402

if TYPE_CHECKING:
    from nsw.api import open_campaign as open  # noqa: A004  nsw.open("campaign") reads as it should

__version__ = "0.1.0"
__all__ = ["__version__", "open"]


def __getattr__(name: str) -> Any:
    """`nsw.open`, imported when it is used: `nsw --version` must not pay for it."""
    if name == "open":
        from nsw.api import open_campaign

        return open_campaign
    raise AttributeError(f"module 'nsw' has no attribute {name!r}")
