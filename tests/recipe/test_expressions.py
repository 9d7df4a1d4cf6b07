"""Expressions: native values, wrapping, strictness, and what they may not do."""

import pytest

from nsw.recipe.expressions import Expression, find_name
from nsw.recipe.units import Fault

VALUES = {"gpus": 4, "model": "res net", "flag": True}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("{{ gpus }}", 4),
        ("{{ gpus * 8 }}", 32),
        ("{{ gpus > 2 }}", True),
        ("{{ '4' }}", "4"),
        ("x{{ gpus }}", "x4"),
        ("{{ gpus }} ", "4 "),
        ("{% if flag %}-v{% endif %} {{ gpus }}", "-v 4"),
        ("{% for i in range(3) %}h{{ i }} {% endfor %}", "h0 h1 h2 "),
        ("n=${#array[@]}", "n=${#array[@]}"),
        ("{{ '%03d' % gpus }}", "004"),
        ("{{ gpus }}${#a[@]}", "4${#a[@]}"),
    ],
)
def test_value(text, value):
    found = Expression.parse(text).value(VALUES)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-3 | abs", 3), ("'x' | bool", True), ("nothing | default(7)", 7), ("nothing | d(7)", 7), ("[4, 5] | first", 4),
        ("[4, 5] | last", 5), ("'1.5' | float", 1.5), ("'%04d' | format(gpus)", "0004"), ("'12' | int", 12),
        ("[1, 2] | join('-')", "1-2"), ("[4, 5] | length", 2), ("[4, 5] | count", 2), ("range(3) | list", [0, 1, 2]),
        ("'A' | lower", "a"), ("'a' | upper", "A"), ("[4, 9, 5] | max", 9), ("[4, 1, 5] | min", 1),
        ("'a-b' | replace('-', '_')", "a_b"), ("2.5 | round(0, 'ceil')", 3.0), ("[3, 1] | sort", [1, 3]),
        ("4 | string", "4"), ("[1, 2] | sum", 3), ("'a b' | title", "A B"), ("' a ' | trim", "a"),
        ("[1, 1, 2] | unique | list", [1, 2]), ("gpus is even", True), ("gpus is divisibleby 3", False),
        ("nothing is defined", False), ("2 ** 10", 1024), ("(-2) ** 3", -8), ("'ab' * 2", "abab"), ("7 % gpus", 3),
    ],
)  # fmt: skip
def test_what_a_recipe_may_compute(text, value):
    found = Expression.parse("{{ " + text + " }}").value(VALUES)
    assert (found, type(found)) == (value, type(value))


def test_only_interpolated_values_are_wrapped():
    def wrap(value):
        return f"<{value}>"

    assert Expression.parse("a 'b' {{ model }} {{ 'lit' }}").render(VALUES, wrap) == "a 'b' <res net> <lit>"
    assert Expression.parse("{% if flag %}a {{ model }}{% endif %}").render(VALUES, wrap) == "a <res net>"


def test_names_and_constancy():
    assert Expression.parse("{{ a + b.c }} {% if d %}{% endif %}").names == {"a", "b", "d"}
    assert Expression.parse("{{ range(3)|list }}").names == frozenset()
    assert Expression.parse("x { y }").is_constant
    assert not Expression.parse("{{ 1 }}").is_constant


def test_the_same_text_is_parsed_once():
    assert Expression.parse("{{ cached }}") is Expression.parse("{{ cached }}")


@pytest.mark.parametrize(
    "text",
    [
        "{{ nope }}",
        "x {{ nope }}",
        "{{ 10 ** 10 ** 10 }}",
        "{{ range(10 ** 9) | list }}",
        "{{ 'x' * 10 ** 9 }}",
        "{{ 10 ** 6 * [1] }}",
        "{{ '%0999999d' % 1 }}",
        "{{ '%0999999d' | format(1) }}",
        "{{ '{:99999999}'.format(1) }}",
        "{{ '{x:99999999}'.format_map({'x': 1}) }}",
        "{{ '%*d' % (999999999, 1) }}",
        "{{ '%*d' | format(999999999, 1) }}",
        "{{ 'x'.ljust(10 ** 9) }}",
        "{{ 'x'.rjust(10 ** 9) }}",
        "{{ '1'.zfill(10 ** 9) }}",
        "{{ ('\\t' * 10000).expandtabs(10 ** 6) }}",
        "{{ ('x' * 10000).replace('x', 'y' * 10000) }}",
        "{{ ('x' * 10000).join(['a'] * 10000) }}",
        "{{ ('x' * 10000).translate({120: 'y' * 10000}) }}",
        "{{ 2 ** 65 }}",
        "{{ 2000000 ** 2 }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ model.center(10 ** 9) }}",
        "{{ 1 / 0 }}",
        "{{ gpus.missing }}",
        "{% if nope %}{% endif %}",
        "{{ lipsum() }}",
    ],
)
def test_refused_when_computed(text):
    with pytest.raises(Fault):
        Expression.parse(text).value(VALUES)


@pytest.mark.parametrize(
    "text",
    [
        "{{ a",
        "{{ a b }}",
        "{{ a | nofilter }}",
        "{% include 'x' %}",
        "{% macro m() %}{% endmacro %}",
        "{% for a in b %}{% for c in d %}{% endfor %}{% endfor %}",
        "{% if x %}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    ],
)
def test_refused_when_parsed(text):
    with pytest.raises(Fault):
        Expression.parse(text)


@pytest.mark.parametrize(
    ("raw", "name", "offset"),
    [
        ("batch {{ batch }}", "batch", 9),
        ("{{ a.b }} {{ b }}", "b", 13),
        ("{{ 'b' ~ b }}", "b", 9),
        ("{{ a", "b", None),
        ("b", "b", None),
    ],
)
def test_a_name_is_found_where_it_is_a_name(raw, name, offset):
    assert find_name(raw, name) == offset
