"""What all passes of a recipe have in common."""

from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from nsw.recipe.fields import Count, DurationOrTemplate, Name, Number, Ranks, Template, one_of
from nsw.recipe.parsed import Parsed
from nsw.recipe.profiler_names import LATER, NOT_YET, PROFILERS, nameable

Kind: TypeAlias = Literal["baseline", "timeline", "counters", "host"]


class _Free:
    """Marks a key that does not decide how a run is done, only which runs there are, how long, or what is made of them.

    A recipe that adds to a campaign may have other values there (nsw/recipe/joined_recipes.py).
    """

    __slots__ = ()


FREE: Final = _Free()


def empty_as_map(value: Any) -> Any:
    """`- timeline:` with nothing behind it means the defaults."""
    return {} if value is None else value


class Model(BaseModel):
    """What every model of a recipe or site has in common: unknown keys are faults, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PassBase(Model):
    """The keys of every pass."""

    kind: ClassVar[Kind]

    given_name: Name | None = Field(default=None, alias="name", description="Name of the pass; defaults to its kind.")
    repeats: Count | None = Field(default=None, description="Repeats of this pass; defaults to the recipe's.")
    warmup: Number | None = Field(
        default=None, description="Warm-up runs of this pass; by default the recipe's, and none for counters."
    )
    time: Annotated[DurationOrTemplate | None, FREE] = Field(
        default=None, description="Walltime of a run of this pass, instead of resources.time."
    )

    @property
    def name(self) -> str:
        """The name, unique among the passes: as given, or the kind."""
        return self.given_name or self.kind


RANKS = (
    "Which processes are profiled: all, first, node (the first of each node), or a list of ranks; the others run the"
    " program alone."
    " Only where each process has a profiler of its own (app.launcher.profiler)."
)


def profiler(kind: Kind, *before: str) -> Parsed:
    """The type of `tool`: what the registry of profilers holds for a kind of pass, behind the words `before`."""
    own = [*before, *PROFILERS[kind], *LATER.get(kind, ())]
    return Parsed(one_of(lambda: (*before, *nameable(kind)), NOT_YET), {"type": "string", "enum": own})


class ProfiledPass(PassBase):
    """The keys of every pass that has a profiler."""

    options: list[Template] = Field(default=[], description="More arguments for the profiler, passed on as they are.")
    ranks: Ranks = Field(default="all", description=RANKS)
