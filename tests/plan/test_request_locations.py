"""A refusal that no node has what is asked for stands at the key that really asks."""

import pytest

from nsw.plan.build import refusal_diagnostic, resource_marks
from nsw.recipe.load import load_recipe_text
from nsw.site.load import load_site


@pytest.mark.parametrize(
    ("resources", "gpus", "line"),
    [
        (["gpus: 0", "memory: 900G"], 0, "memory"),
        (["cpus_per_task: 9", "memory: 900G", "gpus: 0"], 0, "memory"),
        (["gpus: 0", "cpus_per_task: 999"], 0, "cpus_per_task"),
        (["memory: 900G", "gpus: 9"], 9, "gpus"),
        (["memory: 900G"], 1, "memory"),
        (["gpus: 0"], 0, "gpus"),
    ],
)
def test_no_node_has_it_is_told_where_it_is_asked_for(tmp_path, resources, gpus, line):
    (tmp_path / "sites.yaml").write_text("nsw: 1\nsites:\n  here: {scheduler: slurm}\n")
    place = load_site("here", [tmp_path / "sites.yaml"])
    head = "nsw: 1\nname: t\napp: {command: ./p}\npasses: [baseline]\nresources:\n"
    loaded = load_recipe_text(head + "".join(f"  {text}\n" for text in resources))
    at = 6 + [text.split(":")[0] for text in resources].index(line)
    assert refusal_diagnostic(loaded, place, "gpus", "no node", None, gpus=gpus).mark.line == at
    assert resource_marks(loaded, place, gpus=gpus)["gpus"].line == at
