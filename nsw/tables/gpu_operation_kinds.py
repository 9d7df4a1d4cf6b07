"""What an operation on a GPU is, by the name that the profilers print."""

from __future__ import annotations


def gpu_kind(name: str) -> str:
    """kernel, memcpy, memset or um; `[CUDA memcpy HtoD]` is a memcpy, `[Unified Memory GPU page faults]` um."""
    if not name.startswith("["):
        return "kernel"
    if name.startswith("[Unified Memory"):
        return "um"
    lower = name.lower()
    return "memcpy" if "memcpy" in lower else "memset" if "memset" in lower else "kernel"
