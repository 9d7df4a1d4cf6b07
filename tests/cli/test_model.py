"""`nsw model` on a campaign of a program whose law is known: the pages how-many-gpus.md and which-batch.md of docs/howto."""

import json
import re
import shlex
from pathlib import Path

import pytest

HOWTO = Path(__file__).parents[2] / "docs" / "howto"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# one step is 2 ms, 0.12 ms an image, and 1 ms a doubling of the GPUs; what scatters depends on the run's name alone
PROGRAM = """
import argparse, math, random
from pathlib import Path
options = argparse.ArgumentParser()
options.add_argument("--gpus", type=int)
options.add_argument("--batch", type=int)
asked = options.parse_args()
ms = 2 + 0.12 * asked.batch + math.log2(asked.gpus)
ms *= 1 + random.Random(Path.cwd().parent.name).gauss(0, 0.01)
print(f"images_per_sec={asked.gpus * asked.batch / ms * 1000:.2f}")
"""


def blocks(page):
    """The blocks of a page: (language, text)."""
    return BLOCK.findall((HOWTO / page).read_text())


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory):
    """A folder with the program, where the pages' recipes are run."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "train.py").write_text(PROGRAM)
    return folder


@pytest.fixture
def made(nsw, campaigns, monkeypatch):
    """nsw beside the program, with the campaigns of both pages."""
    monkeypatch.chdir(campaigns)
    monkeypatch.setenv("COLUMNS", "132")
    for page in ("which-batch.md", "how-many-gpus.md"):  # the last is that of the commands
        monkeypatch.setenv("NSW_ROOT", str(campaigns / page))
        if not Path(page).exists():
            Path("recipe.yaml").write_text(dict(blocks(page))["yaml"])
            assert nsw("run", "recipe.yaml", "--site", "local").code == 0
    return nsw


def words(text):
    """Lines as words, without rules of tables."""
    return [line.split() for line in text.splitlines() if line.strip() and "──" not in line]


@pytest.mark.parametrize("page", ["how-many-gpus.md", "which-batch.md"])
def test_the_page_prints_what_it_shows(made, page, monkeypatch):
    monkeypatch.setenv("NSW_ROOT", str(Path.cwd() / page))
    printed = []
    for language, text in blocks(page):
        if language == "text":
            assert words(printed[-1]) == words(text)
        elif language == "sh":
            run, *commands = [shlex.split(line, comments=True)[1:] for line in text.splitlines()]
            if run[0] == "summarize":  # the commands of any campaign, which other pages show
                continue
            assert run == ["run", "recipe.yaml", "--site", "local"]  # as the campaign was made
            for command in commands:
                done = made(*command)
                assert done.code == 0, done.err
                printed.append(done.out)
    assert printed


def test_the_page_chooses_what_to_run_at_a_price(nsw, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "132")
    Path("recipe.yaml").write_text(dict(blocks("how-many-gpus.md"))["yaml"])
    Path("train.py").touch()
    line, _, text = dict(blocks("how-many-gpus.md"))["console"].partition("\n")
    done = nsw(*shlex.split(line)[2:], exits=0)
    assert words(done.out) == words(text)
    chosen = json.loads(nsw(*shlex.split(line)[2:], "--json").out)
    assert chosen["price"] <= chosen["at_most"] == 80 * 60
    case, repeats = (word for word in shlex.split(chosen["next"][0]) if word.startswith(("gpus=1,2,4,16", "repeats")))
    planned = json.loads(nsw("plan", "recipe.yaml", "--site", "local", "--set", "gpus=1,2,4,8,16,32",
                             "--case", case, "--set", repeats, "--json").out)  # fmt: skip
    runs = list(planned["runs"])
    assert len(runs) == len(chosen["values"]) * chosen["repeats"]


def test_the_command_that_is_offered_keeps_which_cases_were_asked_for(nsw, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("recipe.yaml").write_text(dict(blocks("how-many-gpus.md"))["yaml"])
    Path("train.py").touch()
    chosen = json.loads(nsw("plan", "recipe.yaml", "--site", "local", "--set", "gpus=1,2,4,8,16,32", "--exclude", "gpus=2",
                            "--for-model", "gpus", "--to", "64", "--at-most", "3h", "--json").out)  # fmt: skip
    assert 2 not in chosen["values"]
    assert "--exclude gpus=2" in chosen["next"][0]


def test_repeats_are_added_until_the_law_predicts_well(nsw, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("recipe.yaml").write_text(dict(blocks("how-many-gpus.md"))["yaml"])
    Path("train.py").write_text(PROGRAM.replace("gauss(0, 0.01)", "gauss(0, 0.02)"))
    options = ["--for-model", "gpus", "--to", "64", "--at-most", "6h"]
    done = nsw("run", "recipe.yaml", "--site", "local", "--set", "gpus=1,2,4,8,16,32", *options, "--within", "3%")
    assert done.code == 0, done.err
    added = re.findall(r"gpus=64 is predicted within [\d.]+ % after (\d) repeats: nsw adds one", done.err)
    (last,) = re.findall(r"no more repeats: gpus=64 is predicted within ([\d.]+) % after (\d) repeats", done.err)
    assert added == [str(count) for count in range(2, int(last[1]))]
    assert float(last[0]) <= 3
    runs = json.loads(nsw("status", "--json").out)["runs"]
    assert len(runs) == 5 * int(last[1])
    assert {run["state"] for run in runs} == {"done"}
    assert "no more repeats" in nsw("resume").err
    assert len(json.loads(nsw("status", "--json").out)["runs"]) == len(runs)


def test_repeats_for_a_law_end_at_the_price(nsw, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("recipe.yaml").write_text(dict(blocks("how-many-gpus.md"))["yaml"])
    Path("train.py").write_text(PROGRAM)
    done = nsw("run", "recipe.yaml", "--site", "local", "--for-model", "gpus", "--to", "64", "--at-most", "80m",
               "--within", "0.001%")  # fmt: skip
    assert done.code == 0, done.err
    assert re.search(r"no more repeats: gpus=64 is predicted within [\d.]+ % after 3 repeats, as many as fit", done.err)


def test_runs_that_were_done_before_cost_what_they_took(made):
    chosen = json.loads(made("plan", "recipe.yaml", "--site", "local", "--for-model", "gpus", "--to", "64",
                             "--at-most", "10m", "--json").out)  # fmt: skip
    assert (chosen["values"], chosen["repeats"]) == ([1, 2, 4, 8, 16], 10)
    assert 0 < chosen["price"] < 600


def test_what_cannot_be_run_for_a_law_is_refused(nsw, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("recipe.yaml").write_text(dict(blocks("how-many-gpus.md"))["yaml"])
    Path("train.py").touch()
    asked = ["run", "recipe.yaml", "--site", "local", "--for-model", "gpus", "--to", "64"]
    for options, message in (
        ([], "belong together"), (["--at-most", "2h", "--until", "decided"], "belong together"),
        (["--at-most", "2h", "--within", "many"], "--within: expected a percentage"),
        (["--at-most", "2h", "--to", "-4"], "--to -4: expected a number above zero"),
    ):  # fmt: skip
        refused = nsw(*asked, *options, exits=2)
        assert message in refused.err
    alone = nsw("run", "recipe.yaml", "--site", "local", "--within", "5%")
    assert (alone.code, "--for-model NAME, --to N and --at-most PRICE belong together" in alone.err) == (2, True)
    assert not Path("campaigns").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--for-model", "gpu", "--to", "64", "--at-most", "1h"], "--for-model gpu: no parameter of this name"),
        (["--for-model", "gpus", "--to", "64"], "--for-model NAME, --to N and --at-most PRICE belong together"),
        (["--for-model", "gpus", "--to", "-4", "--at-most", "1h"], "--to -4: expected a number above zero"),
        (["--for-model", "gpus", "--to", "64", "--at-most", "many"], "--at-most: "),
        (["--for-model", "gpus", "--to", "64", "--at-most", "1 gpu-hour"], "these runs cost no gpu-hours"),
        (
            ["--for-model", "gpus", "--to", "64", "--at-most", "1m"],
            "the cheapest 5 values cost 1.5e+03 seconds, once each",
        ),
    ],
)
def test_what_cannot_be_chosen_is_refused(nsw, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    Path("recipe.yaml").write_text(dict(blocks("how-many-gpus.md"))["yaml"])
    Path("train.py").touch()
    refused = nsw("plan", "recipe.yaml", "--site", "local", *options, exits=2)
    assert message in refused.err


def test_repeats_of_a_pass_are_named_where_the_law_is_to_choose_them(nsw, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("app.py").touch()
    Path("r.yaml").write_text(
        "nsw: 1\nname: growth\napp: {command: 'python3 app.py {{ n }}', files: [app.py]}\nmatrix: {n: [1, 2, 4, 8, 16]}\n"
        "passes: [{baseline: {repeats: 2}}]\nresources: {gpus: 0, time: 1m}\n"
    )
    refused = nsw("plan", "r.yaml", "--site", "local", "--for-model", "n", "--to", "64", "--at-most", "2h", exits=2)
    assert "the passes have `repeats` of their own" in refused.err


def test_data_has_the_law_its_errors_and_what_is_predicted(made):
    (row,) = json.loads(made("model", "--at", "64", "--json").out)["rows"]
    assert row["determined"] is True
    assert row["law"].startswith("gpus / (")
    assert row["low"] < row["value"] < row["high"]
    assert row["value"] == pytest.approx(64 * 64 / (2 + 0.12 * 64 + 6) * 1000, rel=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--over", "gpu"], "--over gpu: no parameter of this name has only numbers above zero"),
        (["--at", "many"], "--at many: expected a number above zero for each parameter"),
        (["--at", "1,2"], "--at needs a value for each of gpus"),
        (["--figure", "loss"], "--figure loss: no run of"),
    ],
)
def test_what_cannot_be_modelled_is_refused(made, options, message):
    refused = made("model", *options)
    assert refused.code == 2
    assert message in refused.err


def test_a_proposal_needs_cases_that_scale(made, monkeypatch):
    monkeypatch.setenv("NSW_ROOT", str(Path.cwd() / "which-batch.md"))
    refused = made("report", "--proposal", "-o", "page.html")
    assert refused.code == 2
    assert "--proposal needs cases that scale along a parameter" in refused.err


def test_a_campaign_that_measured_nothing_has_nothing_to_fit(made, monkeypatch, tmp_path):
    monkeypatch.setenv("NSW_ROOT", str(tmp_path / "campaigns"))
    recipe = dict(blocks("how-many-gpus.md"))["yaml"].replace("python3 train.py", "false")
    (tmp_path / "recipe.yaml").write_text(recipe.replace("files: [train.py]", "files: []"))
    assert made("run", str(tmp_path / "recipe.yaml"), "--site", "local").code != 0
    refused = made("model")
    assert refused.code == 2
    assert "there is nothing to fit" in refused.err
