"""No operation of an expression makes much of little: it is refused before much is made."""

import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from nsw.recipe.expressions import Expression
from nsw.recipe.units import Fault

BIG = "'a' * 99999"
TOO_LARGE = "makes more than 1[0,]+ characters|number has more than 4096 bits|makes a text of more than"

LARGE = [
    f"{{{{ ({BIG}) | replace('a', 'b' * 20000) }}}}",
    f"{{{{ ({BIG}) | replace('', 'b' * 20000) }}}}",
    f"{{{{ {' ~ '.join([f'({BIG})'] * 50)} }}}}",
    f"{{{{ {' + '.join([f'({BIG})'] * 50)} }}}}",
    f"{{% set a = {BIG} %}}" + "{{ a }}" * 100,
    f"{{% set a = {BIG} %}}{{% for i in range(10000) %}}{{{{ a }}}}{{% endfor %}}",
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
    "{{ " + " * ".join(["(9 ** 64)"] * 99) + " }}",
    "{{ ('9' * 4000) | int }}",
]  # fmt: skip
REFUSED = [
    "{{ (1).to_bytes(10 ** 9, 'big') }}",
    "{{ 'x'.center(10 ** 9) }}",
    "{{ ('a' * 99999).encode('idna') }}",
    "{{ 'a'.encode('utf-8').ljust(10 ** 9) }}",
    "{{ 1.5 | round(10 ** 9, 'ceil') }}",
    "{{ 1.5 | round(10 ** 9) }}",
    "{{ '%*d' % (10 ** 9, 1) }}",
    "{{ '%(a)*d' % {'a': 1} }}",
    "{{ 10 ** 10 ** 10 }}",
    "{{ range(10 ** 12) }}",
    "{% for a in [1] %}{% for b in [1] %}{% endfor %}{% endfor %}",
    "{% set ns = namespace(a=1) %}",
    "{% set a %}x{% endset %}",
]


def refusal(text):
    with pytest.raises(Fault) as fault:
        Expression(text).value({})
    return str(fault.value)


@pytest.mark.parametrize("text", LARGE)
def test_what_would_be_large_is_refused_by_its_size(text):
    assert re.search(TOO_LARGE, refusal(text))


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
def test_what_a_recipe_needs_is_not_refused(text, value):
    assert Expression(text).value({}) == value


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
