"""Readers: a file per report format -> tables."""

from nsw.readers.detect import read
from nsw.readers.model import Options, Problem, Report

__all__ = ["Options", "Problem", "Report", "read"]
