"""What a person sees while runs go on, and the command at the end."""

from __future__ import annotations

import json
import time

import pytest

from tests.road.test_going_on import PATIENCE_S, wait_until

HEAD = "nsw: 1\nname: t\nresources: {gpus: 0, time: 5m}\npasses: [baseline]\n"


@pytest.mark.far(quick=True)
def test_status_has_the_last_line_of_a_running_program_and_what_is_left(road):
    program = f"printf 'first\\nstep 7\\033[31m\\n'; until [ -e '{road.home}/go{{{{ n }}}}' ]; do sleep 0.05; done"
    text = f"{HEAD}matrix: {{n: [1, 2, 3]}}\napp:\n  command: |\n    {program}\n"
    (road.home / "go1").touch()
    process = road.start("run", str(road.recipe(text)), "--site", "one")
    wait_until(lambda: road.root.exists() and any(road.root.glob("[!.]*/campaign.db")))
    # behind a transport it is what nsw itself saw last
    wait_until(lambda: any("step 7" in line for line in road.status()["last_lines"].values()))
    data = road.status()
    assert data["elapsed_s"] > 0
    assert data["seconds_left"] is not None
    shown = road.nsw("status").stdout
    assert "prints: step 7" in shown
    assert "\x1b" not in shown
    assert " so far, about " in shown
    for n in (2, 3):
        (road.home / f"go{n}").touch()
    process.communicate(timeout=PATIENCE_S)
    assert road.status()["last_lines"] == {}
    assert "so far" not in road.nsw("status").stdout


@pytest.mark.parametrize("place", ["recipe", "site"])
def test_a_command_is_run_at_the_end_and_learns_how_it_went(road, place):
    keep = f'printf \'%s|\' "$NSW_VERDICT" "$NSW_RUNS" "$NSW_DONE" "$NSW_FAILED" > \'{road.home}/told\''
    more = f"; echo $NSW_CAMPAIGN $NSW_MESSAGE >> '{road.home}/told'"
    notify = f"notify: {json.dumps(keep + more)}"
    text = HEAD + "matrix: {n: [0, 1]}\napp: {command: 'exit {{ n }}'}\n"
    if place == "recipe":
        text += notify + "\n"
    else:
        sites = road.home / "sites.yaml"
        sites.write_text(f"nsw: 1\nsites:\n  here:\n    scheduler: local\n    gpus: {{per_node: 0}}\n    {notify}\n")
    assert road.run(text).returncode == 1
    told = (road.home / "told").read_text()
    assert told.startswith("bad|2|1|1|")
    assert f"{road.campaign.name} {road.campaign.name}: 2 runs: 1 done, 1 failed" in told


def test_a_command_of_words_runs_without_a_shell_and_its_failure_is_a_warning(road):
    text = HEAD + "app: {command: 'true'}\nnotify: [sh, -c, 'echo \"$1\" >&2; exit 3', x, '$HOME; nobody']\n"
    said = road.run(text, exits=0)
    assert "warning: notify: sh failed (exit status 3): $HOME; nobody" in said.stderr
    said = road.run(text.replace("sh, -c", "/no/such, -c"))
    assert "warning: notify: /no/such cannot be started: No such file or directory" in said.stderr


def test_a_run_that_ended_while_nsw_was_away_has_its_own_duration(road):
    program = f"echo here; until [ -e '{road.home}/go' ]; do sleep 0.02; done"
    process = road.start("run", str(road.recipe(f'{HEAD}app: {{command: "{program}"}}\n')), "--site", "here")
    wait_until(lambda: road.root.exists() and any(road.root.glob("[!.]*/scratch/runs/*/attempt-1/stdout")))
    process.kill()
    process.communicate()
    (road.home / "go").touch()
    status = next(road.campaign.glob("scratch/runs/*/attempt-1")) / "status"
    wait_until(status.exists)
    ended = time.time()
    wait_until(lambda: time.time() - ended > 1.5)  # away for longer than the run took to end
    assert road.nsw("resume").returncode == 0
    (run,) = road.runs().values()
    assert run["ended"] <= ended + 0.1
    facts = dict(line.split("=", 1) for line in status.read_text().splitlines() if "=" in line)
    assert run["seconds"] == pytest.approx(float(facts["end"]) - float(facts["start"]), abs=1e-3)
