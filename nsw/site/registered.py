"""The schedulers and transports that this version has, of those that a sites file may name: a line each."""

from __future__ import annotations

from typing import Final

# batch system -> the module with its words, as nsw/schedulers/dialect.py asks for them (and templates/job/NAME.sh.j2)
BATCH: Final = {"slurm": "nsw.schedulers.slurm"}
SCHEDULERS: Final = ("local", *BATCH)

# kind of transport -> the module whose `connect` gives a nsw.transport.model.Transport
TRANSPORTS: Final = {"local": "nsw.transport.local"}
