"""A campaign from Python: `nsw.open("campaigns/NAME").tables.gpu_summary` is a pandas frame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nsw.campaign import folder as folders
from nsw.campaign.ledger import Ledger
from nsw.campaign.meta import NOTE, SITE
from nsw.errors import did_you_mean
from nsw.tables.schema import TABLES

if TYPE_CHECKING:
    import pandas as pd


class Tables:
    """The campaign's tables as attributes; one that no report filled is an empty frame with its columns."""

    def __init__(self, folder: folders.CampaignFolder) -> None:
        self._folder = folder

    def __getattr__(self, name: str) -> pd.DataFrame:
        """The table of that name (nsw.tables.schema)."""
        if name not in TABLES:
            raise AttributeError(f"there is no table {name}; {did_you_mean(name, TABLES) or ', '.join(TABLES)}")
        import pandas as pd

        from nsw.campaign.reading import load_table

        table = load_table(self._folder, name)
        return pd.DataFrame(columns=list(TABLES[name].names)) if table is None else table.to_pandas()

    def __dir__(self) -> list[str]:
        """The tables that hold rows."""
        return sorted(path.stem for path in self._folder.tables.glob("*.parquet"))


class Campaign:
    """A finished or going campaign, to be read."""

    def __init__(self, folder: folders.CampaignFolder) -> None:
        self.folder = folder.path
        self.id = folder.id
        self._ledger = folder.ledger
        self.tables = Tables(folder)
        with Ledger(folder.ledger, read_only=True) as ledger:
            self.note = ledger.meta(NOTE)
            self.site = ledger.meta(SITE)

    def __repr__(self) -> str:
        return f"<nsw campaign {self.id} on site {self.site}>"

    @property
    def runs(self) -> pd.DataFrame:
        """One row a run: id (the tables' `run`), its parameters, pass, state, times."""
        import pandas as pd

        from nsw.campaign.job_ids import job_ids
        from nsw.present.status_view import run_data

        with Ledger(self._ledger, read_only=True) as ledger:
            runs = ledger.runs()
            jobs = job_ids(ledger, runs)
            rows = [run_data(run, jobs) for run in runs]
        return pd.DataFrame([{**row.pop("params"), **row} for row in rows])


def open_campaign(
    named: str | Path | None = None, root: str | Path | None = None, *, max_unpacked: int | None = None
) -> Campaign:
    """The campaign of that folder, id or beginning of an id; with none named the newest under `root`.

    Each of its tables takes at most `max_unpacked` bytes of memory, or is refused; 2 GiB unless given.

    Raises:
        CampaignError: There is none.
    """
    where = folders.root(Path(root) if root is not None else None)
    folder = folders.find(where, str(named) if named is not None else None)
    folder.max_unpacked = max_unpacked
    return Campaign(folder)
