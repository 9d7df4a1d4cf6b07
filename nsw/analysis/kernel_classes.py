"""What kernels compute, by their names: the classes in which an answer says where GPU time goes.

Only libraries' kernels have a class: a user's own kernel is what its counters say, whatever its name. Patterns are data
(kernel_classes.csv): the first that matches the beginning of a name decides. Other packages add some before these
(entry points of the group `nsw.kernel_classes`, each a sequence of (class, pattern)), recipes with `report: {classes:
{NAME: PATTERN}}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Final

from nsw.resources import csv_rows, entry_points_of
from nsw.tables.names import demangle_fully, is_mangled_name, short_name

__all__ = [
    "COPIES",
    "LAYOUT",
    "NCCL",
    "OPTIMIZER",
    "OTHER_KERNELS",
    "SETS",
    "cached_pattern_search",
    "classify_gpu_operation",
    "is_fp32_matrix_kernel",
]  # fmt: skip

GROUP: Final = "nsw.kernel_classes"
COPIES: Final = "copies"
SETS: Final = "sets"
NCCL: Final = "NCCL"
LAYOUT: Final = "layout"
OPTIMIZER: Final = "optimizer"
OTHER_KERNELS: Final = "other kernels"  # of no class that is known

# what is no part of a name that patterns are written for: return types, and how the tools print unnamed namespaces
_AROUND: Final = re.compile(r"^void |^std::enable_if<.*?>::type |(?:\(anonymous namespace\)|<unnamed>|\(unnamed\))::")

# FP32 multiplications and additions without tensor cores: cuBLAS, cuDNN and CUTLASS name their instructions
_FP32: Final = re.compile(r"sgemm|simt_s|ffma|gemmsn|gemmk1|cf32cf32|winograd|fft2d|gemv2[nt]", re.IGNORECASE)
_OTHER_TYPE: Final = re.compile(r"half|b?f(?:p|loat)?16|fp?64|double", re.IGNORECASE)


def classify_gpu_operation(
    name: str, kind: str | None = "kernel", recipe_classes: Mapping[str, str] | None = None
) -> str:
    """The class of a GPU operation.

    Args:
        name: Of the kernel, as printed.
        kind: As in table gpu_summary; what is no kernel is a copy.
        recipe_classes: Classes of a recipe: a pattern each.
    """
    if kind in {"memcpy", "memset", "um"}:
        return SETS if kind == "memset" else COPIES
    for recipe_class, pattern in (recipe_classes or {}).items():
        if re.search(pattern, name):
            return recipe_class
    return _class_by_library_patterns(name)


@cache
def _class_by_library_patterns(name: str) -> str:
    short, full = short_name(name), _AROUND.sub("", demangle_fully(name))
    for class_name, pattern in _plugin_patterns():
        if pattern.search(short):
            return class_name
    for class_name, pattern in _library_patterns():
        if pattern.match(full) or (is_mangled_name(name) and pattern.match(name)):  # some cannot be demangled
            return class_name
    return OTHER_KERNELS


@cache
def cached_pattern_search(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    """A function that tells whether a name has the pattern in it, once a name: cases have the same kernels."""
    return cache(lambda name: pattern.search(name) is not None)


@cache
def _library_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    rows = csv_rows("analysis/kernel_classes.csv")
    return tuple((row["class"], re.compile(row["pattern"], re.IGNORECASE)) for row in rows)


@cache
def _plugin_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    classes = []
    for entry_point in entry_points_of(GROUP).values():
        module, _, attribute = entry_point.partition(":")
        classes += getattr(import_module(module), attribute)
    return tuple((class_name, re.compile(pattern, re.IGNORECASE)) for class_name, pattern in classes)


@cache
def is_fp32_matrix_kernel(name: str) -> bool:
    """Whether a GEMM or a convolution multiplies in FP32 without tensor cores, by its name."""
    return _FP32.search(name) is not None and _OTHER_TYPE.search(name) is None
