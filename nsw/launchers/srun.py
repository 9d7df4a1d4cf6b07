"""srun, of Slurm, and what lines of a job script say of its layout."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from types import MappingProxyType

from nsw.launchers.model import (
    QUANTITIES,
    Launcher,
    Layout,
    LayoutError,
    Part,
    PlaceFacts,
    layout_numbers_by_meaning,
    parse_requested_options,
)


class Srun(Launcher):
    """The options of srun."""

    count_options = ("-n", "--ntasks")
    value_options = (
        "-A -B -C -D -G -J -L -M -N -P -R -S -T -W -b -c -d -e -i -m -o -p -q -r -t -w -x --account --begin"
        " --chdir --comment --constraint --container --container-env --container-image --container-mounts"
        " --container-name --container-workdir --cores-per-socket --cpu-bind --cpu_bind --cpu-freq --cpus-per-gpu"
        " --cpus-per-task --dependency --distribution --environment --epilog --error --exclude --export --extra-"
        " node-info --gpu-bind --gpu-freq --gpus --gpus-per-node --gpus-per-socket --gpus-per-task --gres --gres-"
        " flags --het-group --hint --input --jobid --job-name --licenses --mem --mem-bind --mem-per-cpu --mem-per-"
        " gpu --mpi --network --nodelist --nodes --ntasks-per-core --ntasks-per-gpu --ntasks-per-node --ntasks-per-"
        " socket --open-mode --output --pack-group --partition --profile --prolog --propagate --qos --relative"
        " --reservation --signal --switches --task-epilog --task-prolog --threads --threads-per-core --time --tmp"
        " --tres-per-task --wait"
    )
    meanings = MappingProxyType({
        "-n": "processes", "--ntasks": "processes", "-N": "nodes", "--nodes": "nodes", "--ntasks-per-node": "per_node",
        "-c": "cpus", "--cpus-per-task": "cpus", "--gpus-per-node": "gpus", "-G": "all_gpus", "--gpus": "all_gpus",
        "--gres": "gres", "--gpus-per-task": "rank_gpus", "--tres-per-task": "rank_gpus",
        "--ntasks-per-gpu": "gpu_ranks",
        "-m": "distribution", "--distribution": "distribution", "--cpu-bind": "binding", "--cpu_bind": "binding",
        "--exact": "exact", "--overlap": "exact", "--exclusive": "exact",
    })  # fmt: skip
    flags = frozenset({"exact"})
    abbreviates = True
    joins_values = True
    cyclic_option = "--distribution=cyclic"

    def parts(self, layout: Layout, facts: PlaceFacts) -> Iterator[Part]:
        """The options that ask for a layout."""
        yield "nodes", (f"--nodes={layout.nodes}",)
        yield "processes", (f"--ntasks={layout.total}",)
        yield "per_node", (f"--ntasks-per-node={layout.per_node}",)
        if layout.cpus:
            yield "cpus", (f"--cpus-per-task={layout.cpus}",)
        if layout.node_gpus:
            yield "gpus", (f"--gres={facts.gres}" if facts.gres else f"--gpus-per-node={layout.node_gpus}",)
        if layout.nodes > 1:
            yield "distribution", (f"--distribution={_rank_order(layout)}",)
        if layout.cpus:  # without a number srun would bind a process to one core, whatever the job has
            yield "binding", ("--cpu-bind=cores",)
        if facts.steps_share_nodes:
            yield "exact", ("--exact",)


def check_slurm_line_against_layout(
    line: str, layout: Layout, path: tuple[str | int, ...], *, is_site_line: bool = False
) -> None:
    """See that a line for Slurm says nothing else of the layout than the recipe.

    Args:
        line: The line, with `#SBATCH` or without.
        layout: The layout that follows from the recipe.
        path: Where the line is in the recipe, for the error.
        is_site_line: Whether it is the site's line.

    Raises:
        LayoutError: It does.
    """
    try:
        words = shlex.split(line.removeprefix("#SBATCH"), comments=False)
    except ValueError:  # an open quote, of which sbatch says what it thinks
        return
    subject = "the site's line" if is_site_line else "the line"
    planned = dict(layout_numbers_by_meaning(layout))
    if not layout.ranks or layout.kind == "none":  # room for what a program starts itself
        planned |= dict.fromkeys(("processes", "per_node", "rank_gpus", "gpu_ranks"))
    if not layout.divided:
        planned |= dict.fromkeys(("gpus", "all_gpus", "rank_gpus", "gpu_ranks"))
    for option in parse_requested_options("srun", words):
        number, text = planned.get(option.meaning), words[option.position]
        if number is not None and option.count is not None and option.count != number:
            message = (
                f"{subject} {text} asks for {option.count} {QUANTITIES[option.meaning]}, and the recipe for {number}"
            )
            raise LayoutError(path, message, "leave it out: nsw writes what follows from the recipe")
        is_order = option.meaning == "distribution" and layout.nodes > 1 and layout.kind == "srun"
        if is_order and option.rank_order != _rank_order(layout):
            message = f"{subject} {text} asks for the order {option.words}, and srun is given {_rank_order(layout)}"
            raise LayoutError(path, message, f"write it where srun reads it: `launcher: {{options: [{text}]}}`")


def _rank_order(layout: Layout) -> str:
    return "cyclic" if layout.cyclic else "block"
