"""A program that a recipe's runs on this machine will not find."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

from nsw.errors import did_you_mean
from nsw.recipe.command_words import first_program
from nsw.site.scheduler_and_transport_names import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsw.errors import Diagnostic
    from nsw.recipe.load import LoadedRecipe
    from nsw.site.model import Site

_BARE: Final = re.compile(r"[\w.+-]+")  # neither a path, a template, an assignment nor anything of a shell
_ON_PATH: Final = ("srun", "mpirun", "mpiexec", "aprun", "jsrun")  # torchrun is a module of the program's python
_USUAL: Final = ("python", "python3", "bash", "sh", "mpirun", "mpiexec", "torchrun", "srun", "julia", "perl", "Rscript")


def missing_programs(loaded: LoadedRecipe, site: Site) -> Iterator[Diagnostic]:
    """Warns of a program or a launcher that is not on PATH here; of none where only the runs can tell."""
    app = loaded.recipe.app
    elsewhere = site.scheduler != LOCAL or site.transport.kind != LOCAL or site.replay
    may_bring = app.setup or app.build or app.container or site.modules or site.login_shell
    if elsewhere or may_bring or "PATH" in {*app.env, *site.env}:
        return
    kind = app.launcher.kind
    if kind in _ON_PATH and not shutil.which(kind):
        message = f"{kind} is not on PATH here: the runs will not find it"
        yield loaded.document.diagnostic(("app", "launcher"), message)
    if kind != "none":
        return
    program = next(iter(first_program(loaded.document)), "")
    sent = {name.rpartition("/")[2] for name in app.files}
    if not _BARE.fullmatch(program) or program in sent or shutil.which(program) or _bash_knows(program):
        return
    hint = did_you_mean(program, [name for name in _USUAL if shutil.which(name)])
    message = f"{program} is not on PATH here: the runs will not find it"
    yield loaded.document.diagnostic(("app", "command"), message, hint=hint)


def _bash_knows(word: str) -> bool:
    """Whether it is a word of bash's own, or a function that it has from the environment."""
    return subprocess.run(["bash", "-c", 'type -- "$1"', "nsw", word], capture_output=True, check=False).returncode == 0
