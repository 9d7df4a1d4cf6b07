"""YAML with places: marks, merging, limits, and that nothing but InputError ever comes out."""

import json
import pickle

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from nsw.errors import InputError
from nsw.recipe.document import as_yaml, parse
from nsw.recipe.load import load_recipe_text
from nsw.recipe.units import plain_number

TEXT = """\
a: &a {x: 1, y: [2, 3]}
b:
  <<: *a
  x: 'it''s'
c: "plain {{ v }}"
sites:
  s:
    a: {x: 9}
    d: 4
"""


def lines(document, *paths):
    return [(document.mark(p).line, document.mark(p).column) for p in paths]


def test_each_value_and_key_has_its_place():
    document = parse(TEXT, "f.yaml")
    assert lines(document, ("a", "x"), ("a", "y", 1), ("b", "x"), ("c",)) == [(1, 11), (1, 21), (4, 6), (5, 4)]
    assert str(document.mark(("b", "x"), key=True)) == "f.yaml:4:3"


def test_an_absent_path_has_the_place_of_its_nearest_ancestor():
    document = parse(TEXT, "f.yaml")
    assert document.mark(("a", "nope", 3)) == document.mark(("a",), key=True)
    assert document.mark(("nope",)).line == 1


def test_merge_keys_bring_values_with_the_places_they_came_from():
    document = parse(TEXT, "f.yaml")
    assert document.data["b"] == {"x": "it's", "y": [2, 3]}
    assert document.mark(("b", "y", 0)).line == 1


def test_an_overlay_merges_maps_and_keeps_places():
    document = parse(TEXT, "f.yaml").overlaid(("sites", "s"))
    assert document.data["a"] == {"x": 9, "y": [2, 3]}
    assert document.data["d"] == 4
    assert lines(document, ("a", "x"), ("a", "y"), ("d",)) == [(8, 12), (1, 17), (9, 8)]
    assert document.mark(("a", "x"), key=True).line == 8


def test_an_overlay_replaces_lists():
    document = parse("l: [1, 2]\no: {l: [3]}\n", "f").overlaid(("o",))
    assert document.data["l"] == [3]


def test_offsets_in_values_are_columns_where_nothing_is_escaped():
    document = parse(TEXT, "f.yaml")
    assert document.mark_in_value(("c",), 9).column == 4 + 1 + 9
    assert document.mark_in_value(("b", "x"), 2) == document.mark(("b", "x"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("no", "no"),
        ("true", True),
        ("1:30:00", "1:30:00"),
        ("010", "010"),
        ("0o10", 8),
        ("0x1F", 31),
        ("1e-3", 0.001),
        ("-.5", -0.5),
        (".inf", float("inf")),
        ("2024-01-01", "2024-01-01"),
        ("1_000", "1_000"),
        ("~", None),
        ("", None),
        ("!!str 12", "12"),
        ("!!float 3", 3.0),
        ("'12'", "12"),
        ("+", "+"),
        (".", "."),
    ],
)
def test_plain_values_follow_yaml_1_2(text, value):
    data = parse(f"k: {text}\n", "f").data["k"]
    assert data == value
    assert type(plain_number(data)) is type(value)


@pytest.mark.parametrize("text", ["1e3", "0x1F", "0o17", "1.10", "5.", ".5", "+3", "-0", "1E+05", "!!float 1e3"])
def test_a_number_is_written_as_it_stands_in_the_file(text):
    number = parse(f"k: {text}\n", "f").data["k"]
    assert str(number) == f"{number}" == text.removeprefix("!!float ")
    assert json.loads(json.dumps(number)) == plain_number(number)
    assert pickle.loads(pickle.dumps(number)).text == number.text
    again = parse(as_yaml({"k": [number, str(number), "plain"]}), "f").data["k"]
    assert [(str(v), type(v)) for v in again] == [(str(number), type(number)), (str(number), str), ("plain", str)]


def test_an_alias_that_is_refused_is_pointed_at_among_others():
    with pytest.raises(InputError) as caught:
        parse("a: &a [1]\nb: [*a, *a]\nc: &c {x: *a, y: [*c]}\n", "f")
    assert caught.value.render().splitlines()[0] == "f:3:19: '*c' is inside the node that it refers to"


def test_an_anchor_of_a_name_that_is_taken_is_pointed_at():
    with pytest.raises(InputError) as caught:
        parse("a: &a 1\nb: &a 2\n", "f")
    assert caught.value.render().splitlines()[0] == "f:2:4: the anchor '&a' is defined above already"


def test_aliases_cannot_grow_beyond_bounds():
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    with pytest.raises(InputError, match="the aliases stand for more than"):
        parse("\n".join(levels), "f")


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 10_000, "- " * 100_000 + "a", "? " * 10_000])
def test_deep_nesting_is_refused_before_it_hurts(text):
    with pytest.raises(InputError, match="nested more than 50 levels deep"):
        parse(text, "f")


def test_what_is_wrong_with_deeply_nested_text_is_not_looked_for_at_every_depth(monkeypatch):
    """Each token of it costs a time that grows with the depth."""
    tokens = []
    scan = yaml.scan
    monkeypatch.setattr(yaml, "scan", lambda *a, **k: (tokens.append(t) or t for t in scan(*a, **k)))
    with pytest.raises(InputError, match="this bracket is not closed"):
        parse('app: {command: "x"\n' + "{a: " * 10_000, "f")
    assert 10 < len(tokens) < 1000


def test_crlf_bom_and_unicode_line_ends_keep_places():
    document = parse("\ufeffa: 1\r\nb: 2\r\n", "f")
    assert document.mark(("b",)).line == 2
    assert document.raw(("b",)) == "2"


def test_every_duplicate_is_told():
    with pytest.raises(InputError) as caught:
        parse("a: 1\na: 2\nb: {c: 1, c: 2}\n", "f")
    assert [d.mark.line for d in caught.value.diagnostics] == [2, 3]


def test_terminal_escapes_of_a_file_do_not_reach_the_terminal():
    with pytest.raises(InputError) as caught:
        load_recipe_text('nsw: 1\nname: "\\e[31mred"\napp: {command: "\x1b[31m"}\n')
    assert "\x1b" not in caught.value.render()


_yaml_like = st.text(alphabet=" \t\n:-[]{}#&*!|>'\"%@`,?abn0159.<~$\\\u2028\x85\xe9\u65e5", max_size=60)
_recipe_like = st.lists(
    st.sampled_from(
        [
            *["nsw: 1", "name: x", "app: {command: a}", "app:", "  command: a {{ b }}", "matrix:", "  b: [1, 2]"],
            *["  b: '{{ c }}'", "  include: [{b: 1}]", "  exclude: [{b: 1}, '{{ b > 1 }}']", "  zip: [[b, c]]"],
            *[
                "  c: {range: [1, 3]}",
                "passes: [baseline, {timeline: }]",
                "passes:",
                "  - counters: {kernels: {top: 1}}",
            ],
            *["  - host: {tool: perf}", "resources: {time: 10m, gpus: '{{ b }}'}", "repeats: 0", "sites:"],
            *["  s: {repeats: 2}", "  s:", "    matrix: {b: [3]}", "canary: on", "<<: {repeats: 3}", "? x", "- 1"],
            *["report: {scaling: {axis: b, kind: weak, figure: f}}", "sites: {s: {nsw: 1}}", "app: [a]", "passes: 3"],
            *["matrix: 3", "resources: [3]", "report: 3", "app: {figures: 3, env: [1]}", "sites: [1]", "sites: {s: 1}"],
        ]
    ),
    max_size=12,
).map("\n".join)


@given(st.one_of(_yaml_like, st.text(max_size=40), _recipe_like))
@example("\x00")
@example("\ud800")
@example("a: [\ud800]")
@example("a: !!int x")
@example("a: &a *a")
@example("<<: 1")
@example("{a: b}: c")
@example("a: 99999999999999999999999999999")
@example("%YAML 9.9\n---\na")
@example("nsw: 1\nname: x\napp: {command: '{{ a.b.c }}'}\nmatrix: {a: ['{{ a }}']}")
def test_any_text_gives_a_recipe_or_marked_faults(text):
    try:
        load_recipe_text(text, site="s")
    except InputError as error:
        for diagnostic in error.diagnostics:
            assert diagnostic.mark is not None
            assert diagnostic.mark.line >= 1
            assert diagnostic.render()
