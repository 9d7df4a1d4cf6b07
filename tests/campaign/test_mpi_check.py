"""`nsw sites check` finds out which MPI mpirun and mpiexec are of, with the real ones, and planning uses it."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import closing

import pytest
import yaml

from nsw.site.load import load_site
from nsw.site_check.check import (
    Check,
    Verdict,
    check_site,
    find_facts,
    mpi_check,
    node_checks,
    probe_words,
    save_checks,
)
from nsw.transport.model import connect

REAL = {"openmpi": ("mpirun.openmpi", "mpiexec.openmpi"), "mpich": ("mpirun.mpich", "mpiexec.hydra")}
PRODUCTS = {"openmpi": "Open MPI's", "mpich": "MPICH's or a relative's (Hydra)"}


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """`programs(mpirun="mpirun.openmpi")`: PATH has these names of real programs first."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def link(**names):
        for name, real in names.items():
            if (found := shutil.which(real)) is None:
                pytest.skip(f"{real} is not installed")
            (folder / name).symlink_to(found)
        return folder

    return link


def looked_at(site=None):
    """The checks of this machine."""
    with closing(connect({"transport": {"kind": "local"}})) as transport:
        return {one.what: one for one in check_site(site or {}, transport, None)}


@pytest.mark.parametrize("family", REAL)
def test_whose_mpirun_and_mpiexec_are_is_found_on_login_node_and_compute_node(programs, family):
    mpirun, mpiexec = REAL[family]
    programs(mpirun=mpirun, mpiexec=mpiexec)
    of = PRODUCTS[family]
    expected = Check("MPI", Verdict.GOOD, f"mpirun is {of}, mpiexec is {of} (mpi: {family})")
    assert looked_at()["MPI"] == expected
    printed = subprocess.run(probe_words({}), capture_output=True, text=True, check=True).stdout
    (node,) = (one for one in node_checks({}, printed, earliest=0, latest=1e12) if one.what == "MPI (node)")
    assert (node.verdict, node.found) == (expected.verdict, expected.found)


def test_a_site_that_names_another_mpi_is_warned_with_both(programs):
    programs(mpirun="mpirun.openmpi", mpiexec="mpiexec.openmpi")
    told = looked_at({"mpi": "mpich"})["MPI"]
    assert told.verdict is Verdict.WARNING
    assert told.found == "the site says `mpi: mpich`, but mpirun is Open MPI's, mpiexec is Open MPI's"
    assert "correct `mpi:`" in told.fix
    assert looked_at({"mpi": "openmpi"})["MPI"].verdict is Verdict.GOOD


def test_mpirun_and_mpiexec_of_different_mpis_leave_the_choice_to_a_person(programs):
    programs(mpirun="mpirun.openmpi", mpiexec="mpiexec.hydra")
    told = looked_at()["MPI"]
    assert told.verdict is Verdict.WARNING
    assert told.found == "mpirun is Open MPI's, mpiexec is MPICH's or a relative's (Hydra)"
    assert "openmpi, mpich, pals" in told.fix
    assert looked_at({"mpi": "mpich"})["MPI"].found.endswith("(mpi: mpich)")


def test_pals_is_known_by_its_path_and_an_unknown_one_is_no_guess():
    pals = {"mpiexec": "/opt/cray/pals/1.3.4/bin/mpiexec\nmpiexec version 1.3.4\n"}
    assert mpi_check({}, pals).found == "mpiexec is Cray PALS' (mpi: pals)"
    other = mpi_check({}, {"mpirun": "/opt/x/mpirun\n1.0\n"})
    assert (other.verdict, other.found) == (Verdict.SKIPPED, "mpirun is of an unknown MPI")
    assert mpi_check({}, {}).verdict is Verdict.SKIPPED


def test_the_site_s_modules_are_loaded_first(tmp_path, programs, monkeypatch):
    programs(mpirun="mpirun.openmpi", mpiexec="mpiexec.openmpi")
    other = tmp_path / "mpich"
    other.mkdir()
    for name in ("mpirun", "mpiexec"):
        (other / name).symlink_to(shutil.which("mpiexec.hydra") or pytest.skip("mpiexec.hydra is not installed"))
    monkeypatch.setenv("BASH_FUNC_module%%", f'() {{ [ "$2" != mpich ] || PATH={other}:$PATH; }}')
    assert looked_at({"modules": ["mpich"]})["MPI"].found.endswith("(mpi: mpich)")


def test_planning_uses_what_was_found_until_the_site_changes(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def mpi_of(**keys):
        site = {"scheduler": "cobalt", "gpus": {"per_node": 2}} | keys
        (tmp_path / "sites.yaml").write_text(yaml.safe_dump({"nsw": 1, "sites": {"s": site}}))
        place = load_site("s", [tmp_path / "sites.yaml"])
        return place, find_facts(place).mpi

    place, before = mpi_of()
    assert before is None
    data = place.site.model_dump(mode="json", by_alias=True)
    login = Check("MPI", Verdict.GOOD, "mpirun is Open MPI's (mpi: openmpi)", mpi="openmpi")
    node = Check("MPI (node)", Verdict.GOOD, "mpirun is MPICH's or a relative's (Hydra) (mpi: mpich)", mpi="mpich")
    save_checks(data, [login])
    assert mpi_of()[1] == "openmpi"
    save_checks(data, [login, node])
    assert mpi_of()[1] == "mpich"
    assert mpi_of(account="other")[1] is None
    assert mpi_of(mpi="openmpi")[1] is None, "the site's own word counts"
