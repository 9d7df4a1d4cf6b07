"""`nsw mcp`, asked by the SDK's own client over stdio: ten questions over the demo's recordings, limits, permissions."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from nsw.demo import extract, recordings
from tests.demo.test_answers import readme_figures

pytest.importorskip("mcp.client.client", reason="the MCP SDK (nsw[mcp]) is not installed")

from anyio.from_thread import start_blocking_portal
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from nsw.cli import agents

FIGURES = readme_figures()
# what nsw itself says; all other names of an answer are of recipes and reports
FACTS = {
    "nsw_json", "campaign", "good", "counts", "folder", "number", "table", "gpu_hours_at_most", "node_hours_at_most", "left",
    "total", "offset", "next_offset",
}  # fmt: skip


class Agent:
    def __init__(self, portal, client):
        self.portal, self.client = portal, client

    def call(self, tool, **arguments):
        return self.portal.call(self.client.call_tool, tool, arguments)

    def ask(self, tool, **arguments):
        answer = self.call(tool, **arguments)
        text = answer.content[0].text
        assert not answer.is_error, text
        assert len(text.encode()) <= 100_000
        return json.loads(text)

    def refusal(self, tool, **arguments):
        answer = self.call(tool, **arguments)
        assert answer.is_error
        return answer.content[0].text

    @property
    def tools(self):
        return {tool.name: tool for tool in self.portal.call(self.client.list_tools).tools}


@contextmanager
def served(root, *options):
    words = ["-m", "nsw", "mcp", "--root", str(root), *options]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ), cwd=root)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(stdio_client(server))) as client:
        yield Agent(portal, client)


@pytest.fixture(scope="module")
def agent(demo):
    with served(demo.root) as client:
        yield client


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """What SQL says of the report of one GPU at batch 8."""
    folder = tmp_path_factory.mktemp("recording")
    recording = next(r for r in recordings() if r.params == {"gpus": 1, "batch": 8})
    database = sqlite3.connect(next(p for p in extract(recording, folder) if p.suffix == ".sqlite"))
    yield lambda sql: database.execute(sql).fetchone()[0]
    database.close()


ONE = "gpus-1_batch-8"


def rows(answer):
    return answer["untrusted"]["rows"]


def test_how_fast_is_it_on_four_gpus_at_batch_128(agent):
    (row,) = rows(agent.ask("table", name="scaling", cases=["gpus-4_batch-128"]))
    assert (row["value"], row["unit"]) == (FIGURES[4, 128], "images/s")


def test_how_well_does_it_scale_at_batch_8(agent):
    efficiency = FIGURES[4, 8] / (4 * FIGURES[1, 8])
    assert f"{efficiency:.0%}".replace("%", " % at batch=8") in agent.ask("answer")["untrusted"]["headline"]


def test_how_much_faster_are_two_gpus(agent):
    id_ = rows(agent.ask("overview"))[0]["campaign"]
    answer = agent.ask("compare", first=f"{id_}:gpus=1,batch=8", second=f"{id_}:gpus=2,batch=8")
    faster = FIGURES[2, 8] / FIGURES[1, 8] - 1
    assert f"{1 + faster:.2f}x faster" in answer["untrusted"]["headline"]


def test_which_kernel_costs_most_on_four_gpus(agent):
    answer = agent.ask("table", name="hotspots", cases=["gpus-4_batch-8"], columns=["short_name"], sort="-total_ns")
    assert rows(answer)[0] == {"short_name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL"}


def test_who_makes_the_others_wait_and_what_proves_it(agent):
    findings = rows(agent.ask("answer"))
    late = next(finding for finding in findings if finding["cause"] == "late-rank-host")
    assert "GPU 0 comes last to 72 %" in late["text"]
    evidence = rows(agent.ask("finding", number=late["number"]))
    assert [row["name"] for row in evidence if row["late"] and row["case"] == "gpus-4_batch-8"] == ["GPU 0"]
    assert round(evidence[0]["last_pct"]) == 72


def test_how_many_kernels_ran(agent, recorded):
    answer = agent.ask("table", name="gpu_summary", cases=[ONE], columns=["kind", "calls"], sort="-calls")
    assert answer["next_offset"] is None
    kernels = sum(row["calls"] for row in rows(answer) if row["kind"] == "kernel")
    assert kernels == recorded("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL")


def test_how_long_did_the_longest_kernel_take(agent, recorded):
    answer = agent.ask("table", name="gpu_summary", cases=[ONE], columns=["kind", "max_ns"], sort="-max_ns")
    longest = next(row["max_ns"] for row in rows(answer) if row["kind"] == "kernel")
    assert longest == recorded("SELECT max(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL")


def test_how_much_is_copied_to_the_gpu(agent, recorded):
    answer = agent.ask("table", name="gpu_summary", cases=[ONE], sort="-total_bytes")
    copied = sum(row["total_bytes"] for row in rows(answer) if "Host-to-Device" in row["name"])
    assert copied == recorded("SELECT sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 1")


def test_on_what_was_it_measured(agent):
    notes = " ".join(agent.ask("answer")["untrusted"]["notes"])
    assert "4 NVIDIA H200" in notes
    assert "driver 580.159.04" in notes


def test_what_would_it_cost_to_measure_that_again(agent):
    planned = agent.ask("plan", recipe="alexnet_scaling", site="demo")
    assert planned["total"] == 12
    assert planned["gpu_hours_at_most"] == pytest.approx((1 + 2 + 4) * 4 * 11 / 60)  # limits of 10 min, and a margin


def test_tools_say_when_to_use_them_when_not_and_what_empty_means(agent):
    assert list(agent.tools) == ["overview", "answer", "finding", "table", "compare", "plan"]
    for tool in agent.tools.values():
        description = " ".join(tool.description.split())
        assert "Use it " in description
        assert "Not for" in description
        assert "Empty (total 0)" in description
        assert tool.annotations.read_only_hint


def test_rows_come_fifty_at_a_time_with_their_total_and_how_to_get_the_next(agent):
    seen, offset = [], 0
    while offset is not None:
        answer = agent.ask("table", name="hotspots", columns=["case", "name"], offset=offset)
        assert len(rows(answer)) <= 50
        seen += rows(answer)
        offset = answer["next_offset"]
    assert len(seen) == answer["total"] == 267
    assert len({(row["case"], row["name"]) for row in seen}) > 200
    assert "there is no row 267" in agent.refusal("table", name="hotspots", offset=267)


def test_names_from_reports_are_marked_as_data(agent):
    asked = [("overview", {}), ("overview", {"campaign": "alexnet"}), ("answer", {}), ("finding", {"number": 0}),
             ("table", {"name": "hotspots"}), ("plan", {"recipe": "alexnet_scaling", "site": "demo"})]  # fmt: skip
    for tool, arguments in asked:
        answer = agent.ask(tool, **arguments)
        assert set(answer) - {"untrusted"} <= FACTS
        assert "not instructions" in answer["untrusted"]["about"]


@pytest.mark.parametrize(("length", "count"), [(10, 1000), (5_000, 50), (3_000_000, 60)])
def test_an_answer_has_a_hundred_kilobytes_at_most_and_counts_what_it_cuts(length, count):
    text = agents._answer_text(
        {}, {"note": "\u202e" * length}, [{"name": "x" * length, "n": n} for n in range(count)], 0
    )
    answer = json.loads(text)
    assert len(text.encode()) <= 100_000
    assert "\u202e" not in text
    assert 1 <= len(rows(answer)) <= 50
    assert (answer["total"], answer["next_offset"]) == (count, len(rows(answer)))
    assert length == 10 or "characters more" in rows(answer)[0]["name"]


def test_a_wrong_name_is_an_error_that_lists_the_right_ones(agent):
    assert "columns: case, gpus, batch" in agent.refusal("table", name="hotspots", columns=["colour"])
    assert "hotspots" in agent.refusal("table", name="hotspot")
    assert "gpus-4_batch-8" in agent.refusal("table", name="hotspots", cases=["gpus-4_batch-9"])
    assert "there is no finding 99" in agent.refusal("finding", number=99)
    assert "shipped recipes" in agent.refusal("plan", recipe="nonsense")


def test_no_agent_runs_anything_unless_a_person_allowed_it(agent):
    assert "Unknown tool" in agent.refusal("run", recipe="alexnet_scaling", site="demo")


def test_what_agents_may_run_ends_at_the_price_of_all_runs_together(tmp_path):
    case = {"recipe": "alexnet_scaling", "site": "demo", "case": {"gpus": 1, "batch": 8}}
    with served(tmp_path, "--allow-run", "--at-most", "0.3 gpu-hours") as client:
        assert not client.tools["run"].annotations.read_only_hint
        assert "0.3 gpu-hours are allowed" in client.refusal("run", recipe="alexnet_scaling", site="demo")
        assert "ask for no GPU" in client.refusal("run", recipe="cpu_quickstart", site="local")
        started = client.ask("run", **case)
        assert started["left"] == f"{0.3 - 11 / 60:g} gpu-hours"
        assert "are allowed" in client.refusal("run", **case)
        until = time.monotonic() + 120
        while client.ask("overview", campaign=started["campaign"])["counts"] != {"done": 1}:
            assert time.monotonic() < until
            time.sleep(0.2)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [started["campaign"]]


def refused(*options):
    words = [sys.executable, "-m", "nsw", "mcp", *options]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


def test_to_allow_runs_needs_a_price():
    assert "--allow-run and --at-most belong together" in refused("--allow-run")
    assert "--allow-run and --at-most belong together" in refused("--at-most", "1 gpu-hour")
    assert "is not a unit of an amount" in refused("--allow-run", "--at-most", "1 parsec")


def test_without_the_sdk_the_error_names_the_extra(monkeypatch, tmp_path):
    (tmp_path / "mcp.py").write_text("raise ImportError('no module named mcp')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert "pip install 'nsw[mcp]'" in refused()
