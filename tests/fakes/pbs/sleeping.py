"""`sleep SECONDS` in the time of the fake PBS."""

from __future__ import annotations

import os
import sys

from client import ask

if __name__ == "__main__":
    ask("sleep", seconds=float(sys.argv[1]), job=os.environ["PBS_JOBID"])
