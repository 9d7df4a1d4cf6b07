"""What a batch system has no word for: keys are refused at their place, lines of other systems are left out, with a warning."""

import pytest

from nsw.recipe.load import load_recipe
from nsw.schedulers.adapter import foreign_lines, refused_keys
from nsw.schedulers.create import adapter_of, adapters
from nsw.site.load import load_site

RECIPE = """nsw: 1
name: t
app: {command: ./prog}
passes: [baseline]
resources:
  KEYS
"""
SITES = """nsw: 1
sites:
  there:
    scheduler: SCHEDULER
    KEYS
"""


@pytest.fixture
def files(tmp_path):
    """The recipe and the site, with these lines at their line 6 and 5."""

    def load(scheduler: str, recipe: str = "time: 1m", site: str = "description: a"):
        (tmp_path / "r.yaml").write_text(RECIPE.replace("KEYS", recipe))
        (tmp_path / "sites.yaml").write_text(SITES.replace("SCHEDULER", scheduler).replace("KEYS", site))
        return load_recipe(tmp_path / "r.yaml", "there"), load_site("there", [tmp_path / "sites.yaml"])

    return load


def shown(diagnostics) -> list[str]:
    """Each as a person sees it, without the folder."""
    return [one.render().rpartition("/")[2] for one in diagnostics]


def test_a_line_of_another_system_is_left_out_with_a_warning_at_its_place(files):
    theirs = "extra: ['#PBS -l filesystems=home', '#SBATCH --exclusive', '# words', '-x']"
    loaded, place = files("slurm", theirs, "extra: ['#FLUX: -N1', '--mail-type=none']")
    slurm = adapter_of("slurm")
    in_recipe, in_site = shown(foreign_lines(slurm, loaded, place))
    said = "this line is ignored: lines of Slurm begin with #SBATCH"
    assert in_recipe.startswith(f"r.yaml:6:11: {said}\n  6 | ")
    assert in_site.startswith(f"sites.yaml:5:13: {said}\n  5 | ")
    assert slurm.own_lines(loaded.recipe.resources.extra) == ["#SBATCH --exclusive", "# words", "-x"]
    assert slurm.own_lines(place.site.extra) == ["--mail-type=none"]


@pytest.mark.parametrize("scheduler", sorted(adapters()))
def test_no_system_takes_its_own_lines_for_another_s_and_every_one_sees_the_others(files, scheduler):
    mine = adapter_of(scheduler)
    others = [one.marker for name, one in sorted(adapters().items()) if name != scheduler]
    lines = [f"{marker} -x" for marker in (mine.marker, *others)]
    loaded, place = files(scheduler, f"extra: {lines}")
    assert mine.own_lines(lines) == lines[:1]
    assert len(foreign_lines(mine, loaded, place)) == len(others)
    assert all(f"lines of {mine.name} begin with" in one for one in shown(foreign_lines(mine, loaded, place)))


def test_a_key_that_a_system_has_no_word_for_is_refused_at_its_place_with_what_to_write(files):
    loaded, place = files("lsf", "qos: high", "qos: low")
    in_recipe, in_site = shown(refused_keys(adapter_of("lsf"), loaded, place))
    hint = "hint: leave it out, or write a line of LSF's own: extra: ['#BSUB ...']"
    assert in_recipe.startswith("r.yaml:6:3: LSF has no option for qos\n  6 |   qos: high\n")
    assert in_recipe.endswith(hint)
    assert in_site.startswith("sites.yaml:5:5: LSF has no option for qos\n")
    assert in_site.endswith(hint)
    loaded, place = files("slurm", "qos: high", "qos: low")
    assert refused_keys(adapter_of("slurm"), loaded, place) == []


@pytest.mark.parametrize("scheduler", sorted(adapters()))
def test_a_key_that_asks_for_nothing_is_refused_by_no_system(files, scheduler):
    loaded, place = files(scheduler, "exclusive: false")
    assert refused_keys(adapter_of(scheduler), loaded, place) == []
    loaded, place = files("cobalt", "exclusive: true")
    assert len(refused_keys(adapter_of("cobalt"), loaded, place)) == 1
