"""docs/howto/ci.md: its examples are run in a real checkout, with the environment of the forge and a `gh` that is fake."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "ci.md"
PROGRAM = "import random\nprint(f'images_per_sec={SPEED + random.random() / 10}')\n"
RECIPE = """
nsw: 1
name: gated
app:
  command: python p.py
  files: [p.py]
  figures: {images_per_sec: {regex: 'images_per_sec=([\\d.]+)', unit: images/s}}
passes: [baseline]
resources: {gpus: 0, time: 1m}
"""
GH = f"""#!{sys.executable}
# `gh api`, for comments of one pull request: they are kept in a file, and jq chooses among them
import json, pathlib, subprocess, sys
_, api, *words = sys.argv
assert api == "api", sys.argv
store = pathlib.Path(__file__).with_name("comments.json")
comments = json.loads(store.read_text()) if store.exists() else [{{"id": 7, "body": "looks good"}}]
if "--jq" in words:
    assert words[0] == "repos/me/program/issues/12/comments", words
    jq = ["jq", "-r", words[words.index("--jq") + 1]]
    sys.exit(subprocess.run(jq, input=json.dumps(comments), text=True).returncode)
_, method, path, _, body = words
text = pathlib.Path(body.removeprefix("body=@")).read_text()
if method == "PATCH":
    (comment,) = [c for c in comments if path == f"repos/me/program/issues/comments/{{c['id']}}"]
    comment["body"] = text
else:
    assert (method, path) == ("POST", "repos/me/program/issues/12/comments")
    comments.append({{"id": 8, "body": text}})
store.write_text(json.dumps(comments))
"""
CONTEXT = {
    "github.base_ref": "main", "github.repository": "me/program", "github.event.number": "12", "github.token": "secret",
}  # fmt: skip


def examples() -> list[dict]:
    """The YAML documents of the page: the gate, GitHub's workflow, GitLab's pipeline."""
    return [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)]


@dataclass
class Checkout:
    """A clone with a branch whose program is slower or as fast; `bin` has the forge's commands and nsw."""

    folder: Path
    environment: dict[str, str]

    def git(self, *words: str) -> str:
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        return subprocess.run(
            ["git", *identity, *words],
            cwd=self.folder,
            env=self.environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def push(self, speed: int) -> None:
        (self.folder / "p.py").write_text(PROGRAM.replace("SPEED", str(speed)))
        self.git("commit", "-qam", f"speed {speed}")

    def step(self, script: str, **variables: str) -> int:
        """Run a step as a forge does."""
        return subprocess.run(
            ["bash", "-e", "-c", script], cwd=self.folder, env=self.environment | variables, check=False, timeout=300
        ).returncode


@pytest.fixture
def checkout(tmp_path):
    if shutil.which("git") is None or shutil.which("jq") is None:
        pytest.skip("git or jq is not installed")
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, text in (("gh", GH), ("nsw", f'#!/bin/sh\nexec "{sys.executable}" -m nsw "$@"\n')):
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    (commands / "python").symlink_to(sys.executable)
    environment = os.environ | {
        "PATH": f"{commands}:{os.environ['PATH']}", "CI": "true", "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }  # fmt: skip
    first = Checkout(tmp_path / "origin", environment)
    first.folder.mkdir()
    first.git("init", "-q", "-b", "main")
    gate = next(document for document in examples() if "report" in document)
    (first.folder / "recipe.yaml").write_text(RECIPE + yaml.safe_dump(gate))
    (first.folder / "p.py").write_text(PROGRAM.replace("SPEED", "100"))
    first.git("add", ".")
    first.git("commit", "-qm", "speed 100")
    clone = Checkout(tmp_path / "clone", environment)
    first.git("clone", "-q", ".", str(clone.folder))
    clone.git("checkout", "-qb", "change")
    return clone


def run_steps(checkout: Checkout) -> list[int]:
    """The exit codes of the steps of GitHub's job; after a failure only those that always run."""
    steps = next(document for document in examples() if "jobs" in document)["jobs"]["gate"]["steps"]
    codes: list[int] = []
    for step in steps:
        if "run" not in step or (any(codes) and step.get("if") != "always()"):
            continue
        script = re.sub(r"\$\{\{ (.*?) \}\}", lambda match: CONTEXT[match[1]], step["run"])
        codes.append(checkout.step(script))
    return codes


def test_the_workflow_of_github_fails_for_a_slower_program_and_keeps_one_comment(checkout, tmp_path):
    checkout.push(90)
    assert run_steps(checkout) == [0, 4, 0]
    assert checkout.git("status", "--porcelain") == "?? gate.md"  # git does not see the campaigns
    other, comment = json.loads((tmp_path / "bin" / "comments.json").read_text())
    assert other["body"] == "looks good"
    assert comment["body"].startswith("<!-- nsw gate -->\n# Gate failed: after beside before\n")
    assert len(comment["body"].splitlines()) < 40
    checkout.push(100)
    assert run_steps(checkout) == [0, 0, 0]
    _, comment = json.loads((tmp_path / "bin" / "comments.json").read_text())
    assert "Gate passed" in comment["body"]


def test_the_pipeline_of_gitlab_fails_and_leaves_a_report_of_tests(checkout):
    checkout.push(90)
    job = next(document for document in examples() if "performance" in document)["performance"]
    base = checkout.git("rev-parse", "origin/main")
    codes = [checkout.step(line, CI_MERGE_REQUEST_DIFF_BASE_SHA=base) for line in job["script"]]
    assert codes == [0, 4]
    assert 4 not in job["allow_failure"]["exit_codes"]
    suite = ET.parse(checkout.folder / job["artifacts"]["reports"]["junit"]).getroot()
    assert (suite.tag, suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("testsuite", "1", "1", "0")
    (test,) = suite
    assert test.get("classname") == "images_per_sec: -2%"
    assert test[0].tag == "failure"
