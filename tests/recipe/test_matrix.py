"""Cases: order, names, exclusion, inclusion, zip, ranges, expressions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsw.recipe.matrix import MatrixFault, case_id, expand_matrix
from nsw.recipe.model import Recipe


def cases(**matrix):
    recipe = Recipe.model_validate({"nsw": 1, "name": "x", "app": {"command": "a"}, "matrix": matrix})
    return expand_matrix(recipe.matrix).cases


def values(**matrix):
    return [tuple(c.params.values()) for c in cases(**matrix)]


def test_the_first_parameter_varies_slowest():
    assert [c.id for c in cases(gpus=[1, 2], batch=[8, 16])] == [
        "gpus-1_batch-8",
        "gpus-1_batch-16",
        "gpus-2_batch-8",
        "gpus-2_batch-16",
    ]


def test_without_a_matrix_there_is_one_case():
    assert [(c.id, c.params) for c in cases()] == [("case", {})]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ([1, 4], [1, 2, 3, 4]),
        ([8, 32, 8], [8, 16, 24, 32]),
        ([1, 6, 2], [1, 3, 5]),
        ([3, 1, -1], [3, 2, 1]),
        ([0.1, 0.5, 0.1], [0.1, 0.2, 0.3, 0.4, 0.5]),
    ],
)
def test_a_range_includes_its_stop_and_does_not_drift(bounds, expected):
    assert values(x={"range": bounds}) == [(v,) for v in expected]


def test_excludes_match_values_lists_and_conditions():
    assert values(a=[1, 2, 3], b=[1, 2], exclude=[{"a": [1, 2], "b": 1}, "{{ a * b > 5 }}"]) == [(1, 2), (2, 2), (3, 1)]


def test_true_is_not_one():
    assert values(a=[1, True], exclude=[{"a": True}]) == [(1,)]


def test_includes_add_whole_cases_and_compute_the_rest():
    assert values(a=[1], b="{{ a * 2 }}", include=[{"a": 5}, {"a": 6, "b": 0}]) == [(1, 2), (5, 10), (6, 0)]


def test_includes_alone_define_the_parameters():
    assert values(include=[{"a": 1, "b": 2}, {"b": 4, "a": 3}]) == [(1, 2), (3, 4)]


def test_zipped_parameters_vary_together_at_the_place_of_the_first():
    assert values(gpus=[1, 8], batch=[4, 5], nodes=[1, 2], zip=["gpus", "nodes"]) == [
        (1, 4, 1),
        (1, 5, 1),
        (8, 4, 2),
        (8, 5, 2),
    ]


def test_expressions_are_computed_after_what_they_need():
    assert values(c="{{ b + 1 }}", b="{{ a * 2 }}", a=[1, 2]) == [(3, 2, 1), (5, 4, 2)]


def test_an_expression_must_give_a_value():
    with pytest.raises(MatrixFault, match="gives a list"):
        cases(a="{{ [1, 2] }}")


def test_names_of_cases_are_plain_words_where_they_can_be():
    assert case_id({"model": "res net/50", "x": 1e16, "on": True}) == "model-res-net-50-49876555b2_x-1e16_on-true"
    assert case_id({"path": "a/b/c-" + "d" * 50}).startswith("path-a-b-c-dddd")
    assert case_id({"kept": "v1.2_b"}) == "kept-v1.2_b"


_scalars = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.text(max_size=100),
)
_params = st.fixed_dictionaries({"a": _scalars, "b_c": _scalars, "x1": _scalars})


def _exact(params):
    return [(k, type(v).__name__, repr(v)) for k, v in params.items()]


@given(_params, _params)
def test_names_are_safe_short_and_never_shared(one, other):
    names = [case_id(one), case_id(other)]
    for name in names:
        assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9._-]{0,79}", name)
    assert (names[0] == names[1]) == (_exact(one) == _exact(other))


@pytest.mark.parametrize(
    ("value", "other"),
    [("16", 16), ("true", True), ("a_b-c", "a-b_c"), ("a/b", "a-b"), ("", " "), (1.0, 1), ("1e16", 1e16), ("-1", -1)],
)
def test_values_alike_have_names_of_their_own(value, other):
    assert case_id({"a": value}) != case_id({"a": other})


def test_separators_in_values_do_not_make_names_alike():
    assert case_id({"a": "1_b-2", "b": "3"}) != case_id({"a": 1, "b": "2_b-3"})


def test_ten_thousand_cases_have_ten_thousand_names():
    found = cases(a=list(range(100)), b=list(range(100)))
    assert len({c.id for c in found}) == 10_000
