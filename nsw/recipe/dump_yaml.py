"""Data as YAML that nsw reads as the same data: numbers as they were written, texts that look like numbers quoted."""

from __future__ import annotations

from typing import Any

import yaml

from nsw.recipe.compose_yaml import scalar
from nsw.recipe.numbers_as_written import WrittenFloat, WrittenInt

_TAG = "tag:yaml.org,2002:"


class _Dumper(yaml.SafeDumper):
    """PyYAML knows YAML 1.1, in which `1e3` is a text and `0o17` too."""


def as_yaml(data: Any) -> str:
    """The text, keys in the order of the data."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def _whole(dumper: yaml.SafeDumper, value: WrittenInt) -> yaml.ScalarNode:
    return dumper.represent_scalar(_TAG + "int", str(value))


def _number(dumper: yaml.SafeDumper, value: WrittenFloat) -> yaml.ScalarNode:
    return dumper.represent_scalar(_TAG + "float", str(value))


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(_TAG + "str", value, style=None if _is_text(value) else "'")


def _is_text(value: str) -> bool:
    """Whether it would be read as the text that it is without quotes, as far as nsw is concerned."""
    try:
        return scalar(value, None, plain=True) == value
    except ValueError:
        return False


_Dumper.add_representer(WrittenInt, _whole)
_Dumper.add_representer(WrittenFloat, _number)
_Dumper.add_representer(str, _text)
