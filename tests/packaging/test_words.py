"""Docstrings hold what a caller needs, and the sentences that nsw prints are written as a colleague would say them."""

import re
from pathlib import Path

from tools.docstrings import HELP, lacks
from tools.sentences import sentences

REPOSITORY = Path(__file__).parents[2]
FILES = sorted((REPOSITORY / "nsw").rglob("*.py"))
# tell and say belong to people; a compound such as "of which that" has to be read twice
DIALECT = re.compile(
    r"\b(?:is|are|was|were) (?:said|told)\b|\bof which nsw\b|\bthat which\b|\bwho only\b|\btold (?:of|by)\b"
)


def test_public_functions_document_arguments_errors_units_and_shapes():
    lacking = [
        f"{path.relative_to(REPOSITORY)}:{line}: {name} lacks {what}"
        for path in FILES
        if not str(path.relative_to(REPOSITORY)).startswith(HELP)
        for line, name, what in lacks(path)
    ]
    assert lacking == []


def test_sentences_are_plain():
    wrong = [
        f"{path.relative_to(REPOSITORY)}:{line}: {text}"
        for path in FILES
        for line, text in sentences(path)
        if DIALECT.search(text)
    ]
    assert wrong == []
