"""The design's full recipe: loads, overlays, and every misspelt key is found where it stands."""

from pathlib import Path

import pytest

from nsw.errors import InputError
from nsw.recipe.checks import fields_at
from nsw.recipe.document import parse
from nsw.recipe.load import load_recipe, load_recipe_text
from nsw.recipe.matrix import Case
from nsw.recipe.model import Recipe

FULL = Path(__file__).with_name("full.yaml").read_text()


def keys(document, node, path=()):
    if isinstance(node.value, dict):
        for name, child in node.value.items():
            yield (*path, name)
            yield from keys(document, child, (*path, name))
    elif isinstance(node.value, list):
        for index, child in enumerate(node.value):
            yield from keys(document, child, (*path, index))


def known_keys():
    """Every key of the full recipe that the model names (not the names of parameters, figures, variables, sites)."""
    document = parse(FULL, "recipe.yaml")
    for path in keys(document, document.root):
        inside = path[2:] if path[0] == "sites" else path
        if inside and inside[-1] in (fields_at(Recipe, inside[:-1]) or {}):
            yield document, path


@pytest.mark.parametrize(
    ("document", "path"), list(known_keys()), ids=lambda v: ".".join(map(str, v)) if isinstance(v, tuple) else ""
)
def test_a_misspelt_key_is_found_on_its_line_with_its_name(document, path):
    mark, name = document.mark(path, key=True), path[-1]
    wrong = name + name[-1]
    rows = FULL.splitlines(keepends=True)
    row = rows[mark.line - 1]
    rows[mark.line - 1] = row[: mark.column - 1] + wrong + row[mark.column - 1 + len(name) :]
    with pytest.raises(InputError) as caught:
        load_recipe_text("".join(rows))
    first = caught.value.diagnostics[0]
    assert (first.mark.line, first.mark.column) == (mark.line, mark.column)
    assert first.hint == f"did you mean '{name}'?"
    assert f"'{wrong}'" in first.message


def test_many_keys_were_misspelt():
    assert len(list(known_keys())) > 45


def test_the_full_recipe_says_what_it_says():
    recipe = load_recipe_text(FULL).recipe
    assert [p.name for p in recipe.passes] == ["baseline", "timeline", "counters"]
    assert recipe.passes[2].kernels.cover == 0.9
    assert recipe.passes[2].launches.sample == 5
    assert recipe.passes[2].repeats == 1
    assert recipe.resources.time == 600
    assert recipe.resources.memory == 32 << 30
    assert recipe.resources.gpus == "{{ gpus }}"
    assert recipe.app.figures["images_per_sec"].pick == "last"


def test_a_site_lays_its_section_over_the_recipe():
    loaded = load_recipe_text(FULL, site="polaris")
    assert loaded.recipe.resources.queue == "debug"
    assert loaded.recipe.resources.memory == 32 << 30
    assert loaded.recipe.resources.extra == ["#PBS -l filesystems=home:eagle"]
    assert loaded.document.mark(("resources", "queue")).line == 28
    assert load_recipe_text(FULL, site="elsewhere").recipe.resources.queue is None


def test_a_site_may_complete_a_recipe():
    text = "nsw: 1\nname: x\napp: {files: []}\nsites:\n  a: {app: {command: ./a}}\n"
    assert load_recipe_text(text, site="a").recipe.app.command == "./a"
    with pytest.raises(InputError, match="'command' is missing"):
        load_recipe_text(text)


def test_a_site_may_take_something_away():
    text = "nsw: 1\nname: x\napp: {command: a, container: {runtime: podman, image: i}}\n"
    text += "sites: {s: {app: {container: null}}}\n"
    assert load_recipe_text(text).recipe.app.container is not None
    assert load_recipe_text(text, site="s").recipe.app.container is None


def test_short_forms():
    text = (
        "nsw: 1\nname: x\napp: {command: [a, 1], launcher: srun}\npasses: [baseline, timeline: ]\nmatrix: {gpus: 4}\n"
    )
    loaded = load_recipe_text(text)
    assert loaded.recipe.app.command == ["a", "1"]
    assert loaded.recipe.app.launcher.kind == "srun"
    assert [p.kind for p in loaded.recipe.passes] == ["baseline", "timeline"]
    assert loaded.cases[0].params == {"gpus": 4}


def test_a_recipe_written_back_reads_the_same():
    recipe = load_recipe_text(FULL).recipe
    again = Recipe.model_validate(recipe.model_dump(mode="json", by_alias=True, exclude_unset=True))
    assert again == recipe


def test_the_folder_is_where_the_recipe_is(tmp_path):
    (tmp_path / "apps").mkdir()
    (tmp_path / "apps/train.py").touch()
    (tmp_path / "r.yaml").write_text(FULL)
    loaded = load_recipe(tmp_path / "r.yaml")
    assert loaded.folder == tmp_path
    assert len(loaded.cases) == 11


def test_a_diagnostic_points_at_the_line():
    document = load_recipe_text(FULL).document
    shown = document.diagnostic(("resources", "gpus"), "too many", hint="fewer").render()
    assert shown.splitlines()[0] == "recipe.yaml:24:29: too many"
    assert shown.splitlines()[-1] == "  hint: fewer"


def test_thousands_of_cases_are_not_compared_with_each_other(monkeypatch):
    text = "nsw: 1\nname: x\napp: {command: 'echo {{ n }}'}\nmatrix: {n: {range: [1, 50]}}\npasses: [baseline]\n"
    compared = []
    monkeypatch.setattr(Case, "__eq__", lambda *some: compared.append(some) or False)
    assert len(load_recipe_text(text).cases) == 50
    assert compared == []
