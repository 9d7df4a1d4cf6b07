"""What kernels compute, by their names: the classes in which an answer says where GPU time goes.

Classes are data: the first pattern that a name matches decides. Other packages add some before these (entry points of
the group `nsw.kernel_classes`, each a sequence of (class, pattern)), recipes with `report: {classes: {NAME: PATTERN}}`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from nsw.resources import registered
from nsw.tables.names import short_name

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CLASSES",
    "COPIES",
    "LAYOUT",
    "NCCL",
    "OPTIMIZER",
    "OTHER_KERNELS",
    "SETS",
    "class_of",
    "classes_of",
    "is_fp32_arithmetic",
]

GROUP: Final = "nsw.kernel_classes"
COPIES: Final = "copies"
SETS: Final = "sets"
NCCL: Final = "NCCL"
LAYOUT: Final = "layout"
OPTIMIZER: Final = "optimizer"
OTHER_KERNELS: Final = "other kernels"  # of no class that is known

# a class a line, with patterns of which any may be in the name, those with = as a word; indented lines go on
_TABLE: Final = r"""
NCCL: nccl(?:dev)?kernel nccl\w*kernel nvshmem rccl
optimizer: multi_tensor_apply \badam \blamb\b sgd_?(?:kernel|update) applymomentum apply_?gradient
  fused_?(?:adam|sgd)
layout: nchwtonhwc nhwctonchw transpose_?readwrite batch_?transpose transpose_?tensor swapdims tensor_?transform
  convert_?layout im2col col2im flip_filter
attention: flash_?(?:fwd|bwd|attn|attention) fmha \battention attn mha_ sdpa splitkv paged_?kv
pooling: pool adaptive_average
convolution: unroll_kernel cudnn_\d conv(?!ert) cudnn.*engine [fdw]grad fprop winograd fft2d dgrad_engine wgrad_alg
  implicit_gemm image_first_layer cf32cf32 depthwise cgemm
matrix-vector: gemv gemmk1
GEMM: gemm gemmk matmul nvjet cublas cutlass splitkreduce xmma magma trsm syrk wmma mma_
random numbers: random distribution philox curand dropout bernoulli mtgp xorwow
normalisation: norm bn_(?:fw|bw) batch_?stat welford
softmax and loss: softmax nll_loss cross_?entropy \bloss logsumexp ctc
sort and scan: sort scan topk unique histogram partition onesweep merge_?kernel select_?kernel bitonic
reduction: =dot reduce reduction sum_kernel argm(?:ax|in) segmented \bsum\b norm_?l2 asum
indexing: index gather scatter embedding lookup catarray split_?with slice =take masked_ nonzero one_?hot
  roll_ pad_
FFT: fft regular_radix vector_radix
elementwise: elementwise pointwise functor activation relu gelu silu sigmoid tanh add_?(?:kernel|bias) mul_?kernel
  fill copy =cast convert scale axpy copy_?kernel triton_poi where_kernel clamp op_(?:generic_)?tensor mapplan triad
  add_tensor float_to_half addvec vecadd vector_?add =bias threshold memset \badd\b =sin =cos =exp init
fused by a compiler: triton_ fusion fused loop_ input_
sparse: spmv spmm csr coo_ sparse bsr
"""


def classes_of(table: str) -> tuple[tuple[str, str], ...]:
    """The classes of such a table: a name and a pattern each."""
    lines = table.replace("\n  ", " ").strip().splitlines()
    return tuple(
        (name, "|".join(map(_word_pattern, words.split())))
        for name, _, words in (line.partition(": ") for line in lines)
    )


def _word_pattern(word: str) -> str:
    return f"(?<![a-z]){word[1:]}(?![a-z])" if word.startswith("=") else word


CLASSES: Final = classes_of(_TABLE)

# FP32 multiplications and additions without tensor cores: cuBLAS, cuDNN and CUTLASS name their instructions
_FP32: Final = re.compile(r"sgemm|simt_s|ffma|gemmsn|gemmk1|cf32cf32|winograd|fft2d|gemv2[nt]", re.IGNORECASE)
_OTHER_TYPE: Final = re.compile(r"half|b?f(?:p|loat)?16|fp?64|double", re.IGNORECASE)


def class_of(name: str, kind: str | None = "kernel", recipe_classes: Mapping[str, str] | None = None) -> str:
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
    return _class_by_patterns(name)


@cache
def _class_by_patterns(name: str) -> str:
    text = short_name(name)  # arguments of templates name types, and those of functions too
    return next((class_name for class_name, pattern in _class_patterns() if pattern.search(text)), OTHER_KERNELS)


@cache
def _class_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    plugin_classes = []
    for entry_point in registered(GROUP).values():
        module, _, attribute = entry_point.partition(":")
        plugin_classes += getattr(import_module(module), attribute)
    return tuple(
        (class_name, re.compile(pattern, re.IGNORECASE)) for class_name, pattern in (*plugin_classes, *CLASSES)
    )


def is_fp32_arithmetic(name: str) -> bool:
    """Whether a GEMM or a convolution multiplies in FP32 without tensor cores, by its name."""
    return _FP32.search(name) is not None and _OTHER_TYPE.search(name) is None
