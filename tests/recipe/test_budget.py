"""What an expression may cost: every way to make much of little is refused, before much is made."""

import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from nsw.recipe import expression_budget as budget
from nsw.recipe.expressions import Expression, begin_recipe
from nsw.recipe.faults import Fault

BIG = "'a' * 99999"
TOO_LARGE = "makes more than 100,000|number has more than 4096 bits|makes a text of more than"
TOO_MANY = "takes more than 50,000 steps|loop of more than 10000 turns|range"

# Each of these took gigabytes or minutes, or is a step to what did.
LARGE = [
    f"{{{{ ({BIG}) | replace('a', 'b' * 20000) }}}}",
    f"{{{{ ({BIG}) | replace('', 'b' * 20000) }}}}",
    f"{{{{ {' ~ '.join([f'({BIG})'] * 50)} }}}}",
    f"{{{{ {' + '.join([f'({BIG})'] * 50)} }}}}",
    f"{{% set a = {BIG} %}}{{% set b = a ~ a %}}{{% set c = b ~ b %}}{{{{ c }}}}",
    f"{{% set a = {BIG} %}}" + "{{ a }}" * 100,
    f"{{% set a = {BIG} %}}{{% for i in range(10000) %}}{{{{ a }}}}{{% endfor %}}",
    f"{{{{ ['a'] * 9999 | int | join({BIG}) }}}}",
    f"{{{{ range(9999) | list | join({BIG}) }}}}",
    "{{ '%(a)999999999d' % {'a': 1} }}",
    "{{ '%(a(b))999999999d' % {'a(b)': 1} }}",
    "{{ '%.999999999f' % 1 }}",
    "{{ '%-0999999999d' | format(1) }}",
    f"{{{{ ('%(a)s' * 9999) % {{'a': {BIG}}} }}}}",
    f"{{{{ ('%s' * 9999) % (({BIG},) * 9999) }}}}",
    f"{{{{ [{BIG}] * 9999 }}}}",
    f"{{{{ [({BIG}), ({BIG})] }}}}",
    f"{{{{ {{'a': {BIG}, 'b': {BIG}}} }}}}",
    "{% set a = [1] * 9999 %}" + "".join(f"{{% set a{n} = [a{n - 1 or ''}, a{n - 1 or ''}] %}}" for n in range(1, 30)),
    "{{ " + " * ".join(["(9 ** 64)"] * 99) + " }}",
    "{{ ('9' * 4000) | int }}",
]  # fmt: skip
MANY = [
    "{% for i in 'a' * 99999 %}{% endfor %}",
    "{% for i in range(10000) %}{% if i == 'a' * 9 %}{% endif %}{{ i * 2 + 3 }}{{ i ~ 'x' }}{% endfor %}",
    "{% for i in range(10000) %}" + "{% if i is odd and i != 3 %}{% endif %}" * 30 + "{% endfor %}",
    "{% for i in range(9000) %}{% endfor %}" * 60,
    *(f"{{{{ ('a' * 99999).{name}('b' ~ 'a' * 49000) }}}}" for name in ("rfind", "rindex", "rpartition", "rsplit")),
]
REFUSED = [
    "{{ (1).to_bytes(10 ** 9, 'big') }}",
    "{{ 'x'.center(10 ** 9) }}",
    "{{ ('a' * 99999).encode('idna') }}",
    "{{ 'a'.encode('utf-8').ljust(10 ** 9) }}",
    "{{ 1.5 | round(10 ** 9, 'ceil') }}",
    "{{ 1.5 | round(10 ** 9) }}",
    "{{ ([[1]] * 9999) | sum(start=[]) }}",
    "{{ '%*d' % (10 ** 9, 1) }}",
    "{{ '%(a)*d' % {'a': 1} }}",
    "{{ 10 ** 10 ** 10 }}",
    "{{ range(10 ** 12) }}",
    "{% for a in [1] %}{% for b in [1] %}{% endfor %}{% endfor %}",
    "{% set ns = namespace(a=1) %}",
    "{% set a %}x{% endset %}",
]


@pytest.fixture(autouse=True)
def _fresh():
    begin_recipe()


def refusal(text):
    with pytest.raises(Fault) as fault:
        Expression(text).value({})
    return str(fault.value)


@pytest.mark.parametrize("text", LARGE)
def test_what_would_be_large_is_refused_by_its_size(text):
    assert re.search(TOO_LARGE, refusal(text))


@pytest.mark.parametrize("text", MANY)
def test_what_would_take_long_is_refused_by_its_steps(text):
    assert re.search(TOO_MANY, refusal(text))


@pytest.mark.parametrize("text", REFUSED)
def test_what_has_no_bound_is_not_taken(text):
    assert refusal(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"{{{{ ({BIG}) | length }}}}", 99_999),
        ("{{ ('ab' * 1000) | replace('a', 'xyz') | length }}", 4000),
        ("{{ ('a/b' * 9999).rsplit('/', 1) | last }}", "b"),
        ("{{ '%d of 10000' % 3 }}", "3 of 10000"),
        ("{{ '%(n)05d' % {'n': 7} }}", "00007"),
        ("{{ '%s-%s' % ('a', 'b') }}", "a-b"),
        ("{{ '%5.2f%%' | format(1.234) }}", " 1.23%"),
        ("{{ 'a,b'.split(',') }}", ["a", "b"]),
        ("{{ 'Ab'.upper().startswith('AB') }}", True),
        ("{{ {'a': 1}.get('a') }}", 1),
        ("{{ {'a': 1}.items() | list }}", [("a", 1)]),
        ("{% for i in range(10000) %}{{ i }}{% endfor %}", "".join(map(str, range(10_000)))),
        ("{% for i in [1, 2, 3] if i > 1 %}{{ loop.index }}/{{ loop.length }} {% endfor %}", "1/2 2/2 "),
        ("{% for k, v in {'a': 1} | list | length and [('a', 1)] %}{{ k }}{{ v }}{% endfor %}", "a1"),
        ("{% set a, b = (1, 2) %}{{ a + b }}", "3"),
        ("{{ 2 ** 64 // 2 ** 60 }}", 16),
        ("{{ 1 ~ 'x' ~ 2.5 ~ none }}", "1x2.5None"),
        ("{{ 9 * 10 ** 60 }}", 9 * 10**60),
    ],
)
def test_what_a_recipe_needs_is_in_the_budget(text, value):
    assert Expression(text).value({}) == value


def test_the_expressions_of_a_recipe_have_a_budget_together(monkeypatch):
    monkeypatch.setattr(budget, "_ALL_STEPS", 10_000)
    expression = Expression("{% for i in range(900) %}{{ i }}{% endfor %}")
    for _ in range(4):
        assert expression.value({})
    with pytest.raises(Fault, match="with the expressions before it"):
        [expression.value({}) for _ in range(100)]
    begin_recipe()
    assert expression.value({})


def test_few_steps_cost_nothing_however_many_times(monkeypatch):
    monkeypatch.setattr(budget, "_ALL_STEPS", 1000)
    expression = Expression("{{ n * 2 ~ 'x' }}")
    for number in range(2000):
        assert expression.value({"n": number}) == f"{number * 2}x"


def test_parameters_that_double_each_other_end(tmp_path):
    """Thirty lines, a gigabyte: each parameter is twice the one before it."""
    recipe = tmp_path / "r.yaml"
    chain = "".join(f"  p{n}: ['{{{{ p{n - 1} ~ p{n - 1} }}}}']\n" for n in range(1, 31))
    recipe.write_text(
        "nsw: 1\nname: t\npasses: [baseline]\nresources: {gpus: 0, time: 1m}\n"
        f"app: {{command: 'echo {{{{ p30 }}}}'}}\nmatrix:\n  p0: [abcdefgh]\n{chain}"
    )
    done = limited("plan", str(recipe), "--site", "local", cwd=tmp_path)
    assert done.returncode == 2
    assert "makes more than 100,000 characters" in done.stderr


def test_a_recipe_that_is_a_device_is_read_to_its_limit(tmp_path):
    done = limited("plan", "/dev/zero", "--site", "local", cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def limited(*words, cwd: Path):
    """nsw in a GiB of memory."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    command = [sys.executable, "-m", "nsw", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, preexec_fn=limit, timeout=300)
