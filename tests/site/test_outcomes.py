"""The rows of nsw/site_check/outcomes.csv: what each check may report, and what to do then."""

import ast
import csv
from pathlib import Path
from string import Formatter

import pytest

import nsw
from nsw.site_check.check import Verdict

ROOT = Path(nsw.__file__).parent
ROWS = list(csv.DictReader((ROOT / "site_check" / "outcomes.csv").read_text().splitlines()))
OPTIONS = {"subject", "gpus", "mpi", "ahead_s"}
WITHOUT_ADVICE = {("scratch", "none"), ("scratch", "not reached")}  # as intended; the transport's own sentence has it


def calls():
    """Check, outcomes (literals in the second argument) and names of the values of each call."""
    for path in (*(ROOT / "site_check").glob("*.py"), ROOT / "campaign" / "check_site.py"):
        tree = ast.parse(path.read_text())
        constants = {
            node.target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "check_from_outcome":
                subject = node.args[0]
                check = subject.value if isinstance(subject, ast.Constant) else constants[subject.id]
                texts = {n.value for n in ast.walk(node.args[1]) if isinstance(n, ast.Constant)}
                yield check, texts, [keyword.arg for keyword in node.keywords]


def names_in(row):
    return {name for text in (row["found"], row["fix"]) for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['check']}: {row['outcome']}")
def test_a_row_is_used_with_the_values_that_it_names(row):
    of_check = [(texts, names) for check, texts, names in calls() if check == row["check"]]
    # a name may come from a variable: then every call of this check must have the values
    exact = [names for texts, names in of_check if row["outcome"] in texts]
    matching = exact or [names for texts, names in of_check if not texts & {r["outcome"] for r in ROWS}]
    assert matching
    for names in matching:
        assert None in names or names_in(row) <= set(names) - (OPTIONS - {"mpi"})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['check']}: {row['outcome']}")
def test_what_is_not_good_has_something_to_do(row):
    assert row["found"]
    assert row["fix"] or Verdict(row["verdict"]) is Verdict.GOOD or (row["check"], row["outcome"]) in WITHOUT_ADVICE
