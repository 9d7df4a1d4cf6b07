"""From a site's data, as a campaign keeps it, to the way to it."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from nsw.errors import NotYetError
from nsw.site.scheduler_and_transport_names import transport_path

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nsw.transport.model import Transport


def connect(site: Mapping[str, Any], scratch: str | None = None, mark: Path | None = None) -> Transport:
    """The way to a site.

    Args:
        site: The site as data, defaults left out or not.
        scratch: A campaign's folder there; None as long as there is none.
        mark: A file in the campaign's folder here. By it, or by one in the folder there, a later nsw knows of the
            commands that this one began.

    Raises:
        NotYetError: This version does not know it.
    """
    kind = (site.get("transport") or {}).get("kind", "local")
    path = transport_path(kind)
    if path is None:
        raise NotYetError(f"transport {kind}: not yet")
    way: Transport = resolve_name(path)(site, scratch, mark)
    return way
