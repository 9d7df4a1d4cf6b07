"""Where a site's own templates are rendered: they see the plan's data, and reach neither files nor Python."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from jinja2 import FileSystemLoader, StrictUndefined
from jinja2.runtime import BlockReference, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner

from nsw.errors import NswError
from nsw.safe_files import open_regular

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LARGEST: Final = 1 << 20  # bytes of a template
_PLAIN: Final = (str, int, float, list, tuple, dict, set, frozenset, MappingProxyType)
_OF_JINJA: Final = (BlockReference, LoopContext, Macro, Cycler, Joiner)


class SiteEnvironment(ImmutableSandboxedEnvironment):
    """Jinja whose templates call nothing but Jinja's own and the methods of plain values, which they cannot change.

    They may extend and include the job templates in these folders, and no other file.
    """

    def __init__(self, templates: Sequence[str]) -> None:
        super().__init__(
            loader=FileSystemLoader(templates),
            undefined=StrictUndefined,
            autoescape=False,  # shell, not HTML: every value goes through sh, sh_all or comment
            keep_trailing_newline=True,
        )
        self._functions = tuple(self.globals.values())

    def is_safe_callable(self, obj: Any) -> bool:
        """Whether a template may call it."""
        bound = getattr(obj, "__wrapped__", obj)  # the sandbox's own str.format
        owner = obj if isinstance(obj, _OF_JINJA) else getattr(bound, "__self__", None)
        is_known = isinstance(owner, (*_PLAIN, *_OF_JINJA)) or any(obj is function for function in self._functions)
        return is_known and super().is_safe_callable(obj)


def read_template(file: Path) -> str:
    """The text of a site's template.

    Raises:
        NswError: It cannot be read, is too large or is no text.
    """
    try:
        with os.fdopen(open_regular(file), "rb") as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise NswError(f"the site's template {file} is larger than {LARGEST} bytes")
        return content.decode()
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "it is not UTF-8 text"
        raise NswError(f"the site's template {file} cannot be read: {reason}") from None
