"""OpenACC events as nvprof names them."""

from __future__ import annotations


def openacc_kind(name: str) -> str:
    """compute, data or other, by the event's name."""
    event = name.partition("@")[0].partition("[")[0]  # less the construct of --print-openacc-constructs
    if event in {"acc_compute_construct", "acc_enqueue_launch"}:
        return "compute"
    data = ("data", "upload", "download", "alloc", "create", "delete", "update")
    return "data" if any(word in event for word in data) else "other"
