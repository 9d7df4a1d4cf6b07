"""What a finished campaign's recipe.lock.yaml says beside the recipe: with what, where and when it was carried out."""

from pydantic import Field

from nsw.recipe.fields import Filled, Flag, Text
from nsw.recipe.passes import Model


class LockedGit(Model):
    """The git repository that holds the application."""

    folder: Filled = Field(description="The application's folder.")
    commit: Filled = Field(description="The commit that was checked out.")
    dirty: Flag = Field(description="Whether files of the folder differed from the commit.")


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
