"""Keys that are not indented below the key that they belong to: one fault for one slip, and the rest is read as meant."""

import pytest

from nsw.errors import InputError
from nsw.recipe.load import load_recipe_text

GOOD = """nsw: 1
name: x
app:
  command: ./a {{ n }}
  figures:
    ips:
      regex: 'x=(.*)'
      unit: s
matrix:
  n: [1, 2]
passes:
- baseline:
- timeline:
    trace: [cuda]
resources:
  gpus: 1
report:
  hotspots:
    cover: 90%
"""


def told(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_recipe_text(text)
    return [d.render().splitlines()[0].removeprefix("recipe.yaml:") for d in caught.value.diagnostics]


@pytest.mark.parametrize(("before", "after", "fault"), [
    ("    ips:\n      regex: 'x=(.*)'\n      unit: s\n", "  ips: {regex: 'x=(.*)', unit: s}\n",
     "6:3: 'ips' stands beside 'figures', not below it"),
    ("      regex: 'x=(.*)'\n      unit: s\n", "    regex: 'x=(.*)'\n    unit: s\n",
     "7:5: 'regex' and 'unit' stand beside 'ips', not below it"),
    ("  n: [1, 2]", "n: [1, 2]", "10:1: 'n' stands beside 'matrix', not below it"),
    ("    trace: [cuda]", "  trace: [cuda]", "14:3: 'trace' stands beside 'timeline', not below it"),
    ("  gpus: 1", "gpus: 1", "16:1: 'gpus' stands beside 'resources', not below it"),
    ("    cover: 90%", "  cover: 90%", "19:3: 'cover' stands beside 'hotspots', not below it"),
])  # fmt: skip
def test_one_slip_is_one_fault(before, after, fault):
    load_recipe_text(GOOD)
    assert before in GOOD
    assert told(GOOD.replace(before, after)) == [fault]


def test_several_slips_of_one_map_are_each_told_and_other_faults_show_too():
    text = GOOD.replace("  n: [1, 2]", "n: [1, 2]").replace("  gpus: 1", "gpus: none")
    assert told(text) == ["10:1: 'n' stands beside 'matrix', not below it",
                          "16:1: 'gpus' stands beside 'resources', not below it",
                          "16:7: expected a whole number of at least 0, found 'none'"]  # fmt: skip


def test_a_key_that_is_known_where_it_stands_is_left_there():
    load_recipe_text("nsw: 1\nname: x\napp: {command: ./a}\nmatrix:\nresources: {gpus: 0}\n")
    load_recipe_text("nsw: 1\nname: x\napp: {command: ./a}\npasses:\n- baseline:\n- timeline:\n")


def test_a_misspelt_key_behind_an_empty_one_is_a_misspelt_key():
    (fault,) = told("nsw: 1\nname: x\napp: {command: ./a}\nmatrix:\nresuorces: {gpus: 0}\n")
    assert "unknown key 'resuorces'" in fault
