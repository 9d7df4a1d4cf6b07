"""What a finished campaign's recipe.lock.yaml says beside the recipe: with what, where and when it was carried out."""

from pydantic import Field

from nsw.recipe.fields import Count, Filled, Flag, Text
from nsw.recipe.passes import Model


class LockedGit(Model):
    """The git repository that holds the application."""

    folder: Filled = Field(description="The application's folder.")
    commit: Filled = Field(description="The commit that was checked out.")
    dirty: Flag = Field(description="Whether files of the folder differed from the commit.")


class LockedChoice(Model):
    """What an earlier stage chose for a run."""

    arguments: list[Text] = Field(description="Arguments of the profiler.")
    limit_s: int | None = Field(default=None, description="Time limit in seconds; left out: that of the plan.")
    source: Filled = Field(description="The run whose tables decided.")
    note: Text = Field(default="", description="What was chosen, for people.")
    kernels: list[Text] = Field(
        default=[], description="Mangled names of the kernels that are measured; function names without them."
    )
    ordinals: list[Count] = Field(
        default=[], description="The launches of each of them that are measured, the first being 1."
    )


class LockedChoices(Model):
    """Choices of guided passes. They hold for the same chip, tools and files; else nsw warns and chooses again."""

    chip: Text | None = Field(default=None, description="The GPUs that the jobs ran on.")
    tools: dict[Filled, Text] = Field(default={}, description="Versions of profilers and driver, as the jobs met them.")
    files: Filled = Field(description="SHA-256 over the names and hashes of the application's files.")
    passes: Filled = Field(description="SHA-256 of the recipe's passes.")
    runs: dict[Filled, LockedChoice] = Field(description="What was chosen, by run.")


class Lock(Model):
    """Written by nsw, compared when the recipe is run again: what differs is told as a warning."""

    version: Filled = Field(description="Version of nsw.")
    site: Filled = Field(description="Name of the site.")
    date: Filled = Field(description="When the campaign was made.")
    files: dict[Filled, Text] = Field(default={}, description="SHA-256 of every file of the application, by name.")
    git: LockedGit | None = Field(default=None, description="Where the application came from.")
    tools: dict[Filled, Text] = Field(
        default={}, description="Versions of profilers and driver, as the jobs met them; several are joined by ' | '."
    )
    choices: LockedChoices | None = Field(default=None, description="What an earlier stage chose for runs.")
