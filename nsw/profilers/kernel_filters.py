"""How ncu and nvprof are told which kernels, launches and ranges to profile, with their escapes.

`--kernel-id ::regex:NAMES:ORDINALS` is the form that all versions of ncu take; it may be given once, is split at colons
and counts the launches of each kernel by itself; both parts are regular expressions (Boost's, as Perl has them).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nsw.profilers.model import Counting
    from nsw.recipe.passes import Launches

__all__ = [
    "escape_regex",
    "ncu_kernel_filter_options",
    "ncu_launch_filter_options",
    "ncu_range_filter_options",
    "regex_of_launch_ordinals",
    "regex_of_names",
    "regex_of_number_range",
    "regex_of_numbers",
]


def regex_of_numbers(numbers: Iterable[int]) -> str:
    """An expression that these numbers fit and no others."""
    return f"^({'|'.join(str(number) for number in sorted(set(numbers)))})$"


def regex_of_number_range(first: int, last: int | None) -> str:
    """An expression that the numbers `first` to `last` fit and no others, in a few characters a digit.

    Args:
        first: At least 1.
        last: At least `first`; None: there is no last one.
    """
    if last is None:
        digits = len(str(first))
        parts = [*_regexes_of_range_blocks(first, 10**digits - 1), f"[1-9][0-9]{{{digits},}}"]
    else:
        parts = list(_regexes_of_range_blocks(first, last))
    return f"^({'|'.join(parts)})$"


def _regexes_of_range_blocks(first: int, last: int) -> Iterator[str]:
    """Expressions for blocks such as 37-39, 40-99, 100-299 that together make the range."""
    at = first
    while at <= last:
        size = 1  # the widest block 10^n that starts here and ends within
        while at % (size * 10) == 0 and at + size * 10 - 1 <= last:
            size *= 10
        blocks = min((last - at + 1) // size, 10 - at // size % 10)
        yield _regex_of_decimal_block(at // size, blocks, len(str(size)) - 1)
        at += blocks * size


def _regex_of_decimal_block(first_prefix: int, prefix_count: int, free_digits: int) -> str:
    """`prefix_count` prefixes from `first_prefix` on, which differ in the last digit, then `free_digits` digits."""
    prefix, digit = str(first_prefix)[:-1], first_prefix % 10
    digits = str(digit) if prefix_count == 1 else f"[{digit}-{digit + prefix_count - 1}]"
    return prefix + digits + ("" if free_digits == 0 else "[0-9]" if free_digits == 1 else f"[0-9]{{{free_digits}}}")


_SPECIAL: Final = re.compile(r"[\\.^$|()\[\]{}*+?]")
_NVTX_SPECIAL: Final = re.compile(r"[\\@,\[\]/*+]")


def escape_regex(name: str) -> str:
    """A name as a regular expression that fits it alone."""
    return _SPECIAL.sub(lambda match: "\\" + match[0], name)


def regex_of_names(names: Iterable[str]) -> str:
    """A regular expression that these names fit and no others."""
    return f"^({'|'.join(escape_regex(name) for name in names)})$"


def kernel_name_regex(names: Sequence[str] | None, regex: str | None, exclude: Sequence[str]) -> str | None:
    """One regular expression for all that is asked of a kernel's name; None: nothing is.

    Args:
        names: Names to measure; None: all.
        regex: An expression for names to measure.
        exclude: Expressions for names to leave out.
    """
    pattern = None if not names else regex_of_names(names)
    if regex is not None:
        pattern = _without_noncapturing_groups(regex)
    if not exclude:
        return pattern
    left_out = f"^(?!.*({'|'.join(_without_noncapturing_groups(e) for e in exclude)}))"
    return left_out if pattern is None else f"{left_out}.*({pattern})"


def regex_of_launch_ordinals(launches: Launches) -> str:
    """An expression for the launches of each kernel that are measured; empty: all."""
    skip, count = launches.skip or 0, launches.count
    if not skip and count is None:
        return ""
    return regex_of_number_range(skip + 1, None if count is None else skip + count)


def ncu_kernel_filter_options(counting: Counting, *, is_legacy_ncu: bool) -> tuple[str, ...]:
    """The arguments that choose kernels and launches.

    Args:
        counting: What is asked.
        is_legacy_ncu: Whether it is a version of 2019 or 2020, whose -k is an expression without `regex:` before it.
    """
    kernels, launches = counting.counters_pass.kernels, counting.counters_pass.launches
    pattern = kernel_name_regex(kernels.names, kernels.regex, counting.counters_pass.left_out)
    if launches.warmup:
        skip = ("--launch-skip-before-match", str(launches.warmup))
        if pattern is None:
            return skip
        return (
            "--kernel-regex" if is_legacy_ncu else "--kernel-name",
            pattern if is_legacy_ncu else f"regex:{pattern}",
            *skip,
        )
    ordinals = regex_of_launch_ordinals(launches)
    if pattern is None and not ordinals:
        return ()
    return ("--kernel-id", f"::regex:{pattern or '.*'}:{ordinals}")


def ncu_launch_filter_options(mangled_names: Sequence[str], ordinals: Sequence[int]) -> tuple[str, ...]:
    """The arguments for these launches (from 1) of each of these kernels, by their mangled names.

    Mangled names tell template instances apart, hold no colon, and are the same in nsys.
    """
    return (
        "--kernel-name-base",
        "mangled",
        "--kernel-id",
        f"::regex:{regex_of_names(mangled_names)}:{regex_of_numbers(ordinals)}",
    )


def ncu_range_filter_options(counting: Counting) -> tuple[str, ...]:
    """The arguments that choose an NVTX range and its instances."""
    within = counting.counters_pass.within
    if within is None:
        return ()
    domain = "" if within.domain is None else f"{_escape_nvtx_name(within.domain)}@"
    words = (
        "--nvtx",
        "--nvtx-include",
        f"{domain}{_escape_nvtx_name(within.nvtx)}" + ("" if within.start_end else "/"),
    )
    if not within.instances:
        return words
    return (*words, "--range-filter", f"::{'|'.join(str(n) for n in sorted(set(within.instances)))}")


def _escape_nvtx_name(name: str) -> str:
    return _NVTX_SPECIAL.sub(lambda match: "\\" + match[0], name)


def _without_noncapturing_groups(regex: str) -> str:
    """A group that does not catch is written with a colon, and ncu splits there."""
    return regex.replace("(?:", "(")
