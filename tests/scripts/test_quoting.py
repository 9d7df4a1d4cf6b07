"""Nothing that a parameter holds may break out of its word: proven by what bash makes of it."""

import shutil
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nsw.errors import UsageError
from nsw.plan.command import command_words
from nsw.recipe.expressions import Expression
from nsw.scripts.quoting import escape_comment, quote, quote_all

NASTY = [
    "plain", "a b", "'", '"', "'\"'", "; touch pwned", "$(touch pwned)", "`touch pwned`", "a\nb", "\n", "", "-rf", "--", "$HOME",
    "${x}", "\\", "\\\\'", "é ü 漢字 🙂", "*", "~", "#x", "!!", "a&b", "|", ">(x)", "=", "A=B", "\t", "\r\n", "%s", "{a,b}", "[x]",
]  # fmt: skip
SHELL = ("bash", "-o", "pipefail", "-c")
SHOW = [shutil.which("printf"), r"%s\0"]  # prints each of its arguments, a NUL behind it
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)


def through_bash(text: str) -> list[str]:
    """The arguments that a program gets from a shell text."""
    done = subprocess.run(["bash", "-c", f"{quote_all(SHOW)} {text}"], capture_output=True, check=True)
    return done.stdout.decode().split("\0")[:-1]


def run_words(found: tuple[str, ...]) -> list[str]:
    """What the program sees when the words of a command are executed without a shell in between."""
    done = subprocess.run(found, capture_output=True, check=True)
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize("value", NASTY)
def test_a_quoted_value_is_one_argument(value):
    assert through_bash(quote(value)) == [value]


@given(st.lists(TEXT, min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_any_values_come_through_bash_unchanged(values):
    assert through_bash(quote_all(values)) == values


def test_a_nul_is_refused_by_name():
    with pytest.raises(UsageError, match="NUL"):
        quote("a\0b")


@pytest.mark.parametrize("value", NASTY)
def test_a_comment_stays_on_its_line(value):
    text = f"# {escape_comment(value)}\necho reached"
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "reached\n"


TEMPLATES = {
    "unquoted": "PROGRAM {{ v }} end",
    "glued": "PROGRAM --x={{ v }}.log end",
    "double": 'PROGRAM "{{ v }}" end',
    "double with text": 'PROGRAM "a {{ v }} b" end',
    "single": "PROGRAM 'a {{ v }} b' end",
}
EXPECT = {
    "unquoted": lambda v: [v, "end"],
    "glued": lambda v: [f"--x={v}.log", "end"],
    "double": lambda v: [v, "end"],
    "double with text": lambda v: [f"a {v} b", "end"],
    "single": lambda v: [f"a {v} b", "end"],
}
# behind the program: nothing, or something that needs a shell
SHELLS = {"simple": "", "with a shell": " && true"}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("how", TEMPLATES)
@pytest.mark.parametrize("value", NASTY)
def test_a_parameter_is_one_argument_wherever_it_stands(how, value, shell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = TEMPLATES[how].replace("PROGRAM", quote_all(SHOW)) + SHELLS[shell]
    found = command_words(Expression.parse(text), {"v": value})
    assert (found[:4] == SHELL) == bool(SHELLS[shell])
    assert run_words(found) == EXPECT[how](value)
    assert not list(tmp_path.iterdir())


@given(TEXT, TEXT)
@example('"; touch pwned; "', "'")
@settings(max_examples=60, deadline=None)
def test_two_parameters_in_a_shell_text_stay_apart(one, two):
    text = quote_all(SHOW) + ' "{{ one }}" {{ two }} | cat'
    assert run_words(command_words(Expression.parse(text), {"one": one, "two": two})) == [one, two]


PIECES = ["a", " ", "'", '"', "\\", "\\$HOME", "\\`", "'$x'", "\\\n", "{{ v }}", '"', "\\"]


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.sampled_from(["a b", "'", '"', "\\", "$HOME", "`", "ok"]))
@example(['"', "\\$HOME", '"'], "ok")
@example(['"', "\\", "{{ v }}", '"'], "a b")
@example(["\\", "{{ v }}"], "a b")
@settings(max_examples=150, deadline=None)
def test_quotes_and_backslashes_of_a_command_mean_what_they_mean_to_bash(pieces, value):
    """With the value in a place where bash sees one plain letter instead; with a shell and without."""
    text = "".join(pieces)
    by_bash = subprocess.run(
        ["bash", "-c", f"{quote_all(SHOW)} {text.replace('{{ v }}', 'V')}"], capture_output=True, check=False
    )
    if by_bash.returncode or by_bash.stderr or text.endswith("\\"):  # quotes that are never closed, or quote nothing
        return
    expected = [word.replace("V", value) for word in by_bash.stdout.decode().split("\0")[:-1]]
    for tail in SHELLS.values():
        whole = ["bash", "-n", "-c", f"true {text.replace('{{ v }}', 'V')}{tail}"]
        if subprocess.run(whole, capture_output=True, check=False).returncode:
            continue  # a line that ends before the rest of the command
        assert run_words(command_words(Expression.parse(f"{quote_all(SHOW)} {text}{tail}"), {"v": value})) == expected


def test_a_command_without_shell_syntax_is_taken_apart_and_needs_no_shell():
    found = command_words(Expression.parse("python train.py -b {{ batch }} --out 'my file'"), {"batch": 16})
    assert found == ("python", "train.py", "-b", "16", "--out", "my file")


@pytest.mark.parametrize(
    "text",
    [
        "a | b",
        "a > f",
        "A=1 b",
        "cd x && b",
        "echo $HOME",
        'echo "$HOME"',
        "ls *.txt",
        "cd ~",
        "cd build",
        "exit 3",
        "ulimit -s unlimited",
        "a; b",
        "echo `x`",
    ],
)
def test_shell_syntax_is_given_to_bash_as_it_is_written(text):
    assert command_words(Expression.parse(text), {}) == (*SHELL, text, "nsw")


def test_plain_values_stay_readable_in_a_shell_text():
    found = command_words(Expression.parse("cd build && ./run -n {{ n }}"), {"n": 4})
    assert found == (*SHELL, "cd build && ./run -n 4", "nsw", "4")


def test_a_command_is_no_longer_than_an_argument_may_be():
    with pytest.raises(UsageError, match="has 131,073 characters, and Linux takes at most 131,072 in an argument"):
        command_words(Expression.parse("x" * 131_073), {})
    assert command_words(Expression.parse("x" * 131_072), {}) == ("x" * 131_072,)


def test_an_unclosed_quote_is_said_with_the_command():
    with pytest.raises(UsageError, match="opens a quote ' but never closes it"):
        command_words(Expression.parse("python 'train.py"), {})


@pytest.mark.parametrize(("line", "status"), [("(exit 3) | cat", 3), ("true | (exit 4)", 4), ("echo a | cat", 0)])
def test_a_pipe_of_the_command_fails_when_any_of_its_parts_does(line, status):
    found = command_words(Expression.parse(line), {})
    assert subprocess.run(found, check=False, stdout=subprocess.DEVNULL).returncode == status
