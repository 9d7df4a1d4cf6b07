"""What a recipe or a site's template computes takes a bounded time and a bounded memory."""

import resource
import signal
import threading

import pytest

from nsw.apart import limited_block
from nsw.campaign.starter_files import write_from_script
from nsw.errors import NswError
from nsw.scripts.render import SiteEnvironment

LOOPS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
GROWS = "{% set ns = namespace(t='x' * 1000) %}{% for n in range(40) %}{% set ns.t = ns.t ~ ns.t %}{% endfor %}"


@pytest.fixture
def settings():
    def now():
        return (
            resource.getrlimit(resource.RLIMIT_AS), signal.getsignal(signal.SIGVTALRM),
            signal.getitimer(signal.ITIMER_VIRTUAL),
        )  # fmt: skip

    before = now()
    yield
    assert now() == before


@pytest.mark.parametrize(
    ("template", "least"),
    [(LOOPS, "the template takes more than 0.2 s"), (GROWS, "the template takes more than 256 MiB")],
)
def test_a_template_that_goes_on_for_ever_or_grows_for_ever_is_an_error(template, least, settings):
    text = SiteEnvironment([]).from_string(template)
    seconds = 0.2 if template is LOOPS else 60
    with pytest.raises(NswError, match=least), limited_block("the template", seconds=seconds, memory=256 << 20):
        text.render()


def test_what_stays_within_is_not_touched(settings):
    with limited_block("it"):
        text = SiteEnvironment([]).from_string("{{ 1 + 1 }}").render()
    assert text == "2"


def test_another_thread_may_plan_too(settings):
    done = []

    def plan():
        with limited_block("it"):
            done.append(True)

    thread = threading.Thread(target=plan)
    thread.start()
    thread.join()
    assert done == [True]


def test_a_script_that_doubles_its_variables_is_converted_in_little_memory(tmp_path):
    doubled = "".join(f"A{n}=$A{n - 1}$A{n - 1}\n" for n in range(1, 40))
    grown = "".join("B=($B ${B[@]} ${B[@]})\n" for _ in range(40))
    script = f"#!/bin/bash\n#SBATCH -N 1\nA0=xxxxxxxxxx\nB=(y)\n{doubled}{grown}nsys profile ./app $A39 ${{B[@]}} $A1\n"
    (tmp_path / "job.sh").write_text(script)
    made = write_from_script(tmp_path / "job.sh", tmp_path / "recipe.yaml", "s", force=False)
    (recipe,) = made.recipes
    assert "x" * 20 in recipe.read_text()
    assert len(recipe.read_text()) < 1 << 20
    assert any(not line.is_understood and line.text.startswith("A3") for line in made.lines)
