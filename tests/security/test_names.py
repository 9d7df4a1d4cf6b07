"""Names and paths of others stay what they are: one name of one file, below the folder that is meant."""

from pathlib import Path

import pytest

from nsw.campaign.planning import make_plan
from nsw.campaign.start import Ingredients, make_campaign_folders
from nsw.engine import folder as folders
from nsw.errors import InputError, NswError
from nsw.recipe.load import load_recipe_text

NAMES = ["..", ".", "../up", "../../etc/passwd", "/abs", "a/../../b", "a/b", "-rf", "~", "~root", "$HOME", "$(touch PWNED)",
         "`touch PWNED`", "a\nb", "a\rb", "a\tb", "x y", "\u202ecod", "\u2028", "%2e%2e%2f", "..\\..\\x", "CON", "x" * 300, "[red]x[/red]",
         "<script>", "=1+1", "'", '"', ";", "|", "&", "*", "?", "{a,b}", "#", "!!", "\x1b[2J", "\x9b2J", "é", "漢", ""]  # fmt: skip
HEAD = "nsw: 1\nname: t\npasses: [baseline]\nresources: {gpus: 0, time: 1m}\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return folder


def planned(here, text: str):
    (here / "r.yaml").write_text(HEAD + text)
    return make_plan("r.yaml", "local").plan


def test_whatever_a_parameter_holds_its_run_has_a_folder_of_one_plain_name(here):
    import json

    values = [v for v in NAMES if not any((ord(c) < 32 and c not in "\n\t\r") or 0x7F <= ord(c) < 0xA0 for c in v)]
    plan = planned(here, f"app: {{command: 'true {{{{ p }}}}'}}\nmatrix: {{p: {json.dumps(values)}}}\n")
    ids = [run.id for run in plan.runs]
    assert len(set(ids)) == len(values)
    for name in (*ids, *(job.name for job in plan.jobs)):
        assert name.isascii()
        assert name.replace(".", "").replace("-", "").replace("_", "").isalnum(), name
        assert name[0] not in ".-"
        assert len(name) < 200


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_or_pass_is_called_so_only_if_that_can_be_a_folder(name):
    import json

    as_name, as_pass = (HEAD.replace("name: t", f"name: {json.dumps(name)}"),
                        HEAD.replace("[baseline]", f"[{{baseline: {{name: {json.dumps(name)}}}}}]"))  # fmt: skip
    for text in (as_name, as_pass):
        try:
            recipe = load_recipe_text(text + "app: {command: 'true'}\n").recipe
        except InputError:
            continue
        assert recipe.name.isascii()
        assert not set("/\\\0 \n'\"$`;") & set(recipe.name + recipe.passes[0].name)
        assert name not in {"", ".", ".."}
        assert name[0] not in ".-~"


@pytest.mark.parametrize("source", ["../out/x.py", "../out", "sub/../../out/x.py", "{out}/x.py", "../here/../out/x.py"])
def test_files_of_an_application_come_to_stand_in_its_folder_wherever_they_are_from(here, source):
    out = here.parent / "out"
    out.mkdir()
    (out / "x.py").write_text("pass")
    (here / "sub").mkdir()
    plan = planned(here, f"app: {{command: 'true', files: ['{source.format(out=out)}']}}\n")
    made = make_campaign_folders(Path("campaigns"), plan, Ingredients({"app": {}}, {}, None, lambda *_: ""))
    (file,) = [p for p in made.app.rglob("*") if p.is_file()]
    assert file.resolve().is_relative_to(made.app.resolve())
    assert sorted(p.name for p in here.iterdir()) == ["campaigns", "r.yaml", "sub"]


@pytest.mark.parametrize("name", [n for n in NAMES if n not in {"", ".", ".."}])
def test_a_campaign_is_found_by_its_name_and_by_nothing_like_it(here, name):
    Path("campaigns").mkdir()
    with pytest.raises((NswError, OSError)):
        folders.find(Path("campaigns"), name)
    assert list(Path("campaigns").iterdir()) == []
