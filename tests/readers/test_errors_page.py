"""docs/errors.md has the messages of other tools that nsw knows, in words that a reader pastes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from nsw.engine.failures import failures
from nsw.readers.messages import known_messages
from tools.errors_page import examples, page

ROOT = Path(__file__).parents[2]
PATTERNS = [f.pattern for f in failures()] + [m.pattern for m in known_messages()]


def test_the_page_of_errors_is_current():
    done = subprocess.run([sys.executable, ROOT / "tools" / "errors_page.py", "--check"], check=False, cwd=ROOT)
    assert done.returncode == 0, "run: python tools/errors_page.py"


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.pattern[:40])
def test_a_message_of_the_page_is_one_that_nsw_recognizes(pattern):
    texts = [re.sub(r"\bN\b", "1", text).replace("...", "x") for text in examples(pattern.pattern)]
    assert any(pattern.search(text + end) for text in texts for end in ("", " ", ": "))


def test_an_example_has_the_first_of_inner_alternatives_and_names_what_differs():
    assert examples(r"[Ff]ailed to (?:open|load) .*\.rep: \d+|no (?:such )?file") == [
        "Failed to open ... .rep: N",
        "no file",
    ]


@pytest.mark.parametrize(
    "message", ["Invalid qos", "unauthorized request", "CUDA out of memory", "No ... were profiled"]
)
def test_messages_of_schedulers_programs_and_profilers_are_headings(message):
    assert any(line.startswith("### ") and f"`{message}`" in line for line in page().splitlines())
