"""Expressions: native values, wrapping, strictness, and what they may not do."""

import pytest

from nsw.recipe.expressions import Expression, find_name
from nsw.recipe.faults import Fault

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
