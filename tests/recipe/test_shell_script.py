"""Scripts taken apart: the same words as bash gives its commands, and what only bash knows is not guessed."""

import os
import subprocess

import pytest

from nsw.convert.shell_script import parse_script
from nsw.errors import UsageError

WORDS = r"""
A=plain B='two words' C="in $A quotes" D=$A.$B EMPTY=
LIST=(one "two words" $A) NONE=()
LIST+=(four)
show a 'b c' "d e" f\ g h"i"'j'
show $A "$B" $B ${C} "${D}" x$A"y" $EMPTY "$EMPTY" end
show "${LIST[@]}" "${NONE[@]}" -- ${LIST[@]} "${LIST}"
show one\
two three \
   four # a comment
show '#' a#b "#c" '$A' \$A "\$A" "a\"b" 'it'"'"'s'
show -O2 -std=c++11 %q{RANK} {a} --set=full @x +y ,z
show first; show second && show third || show never
show piped | cat >/dev/null; A=changed
show $A $D <<'EOF' 2>/dev/null
show not this; "
EOF
export X=1 Y="2 3"
show $X "$Y" $Y
A=only show x
show $A
if true; then show inside; fi
for i in 1; do show loop; done
case x in a|b) show never;; x) show case;; esac
f() { show called; }
{ show group; }
(show sub)
show last"""

FLOW = r"""
A=a/b.c/d.e.f B=xxyxx X=b N=3
show ${A##*/} ${A#*/} ${A%.*} ${A%%.*} ${A/b/Q} ${A//b/Q} ${B//x} ${B/x/$X} ${A%/*} ${A#z} "${A%.f}"/x
case $X in a) show a;; [bc]|d) show b;; e) show e;; *) show other;; esac
case "$A" in *.e) show e;; "a/b.c/d.e.*") show quoted;; a*) ;; *) show other;; esac
if [ $N -gt 5 ]; then show big; elif [[ $X == b* && ! $N = 4 ]]; then show middle; else show small; fi
if ((N > 2)) || false; then show more; fi
if [ -z "" -a "$X" != c ]; then if true; then Y=in; fi; fi; show $Y
[ $N = 3 ] && show and; [ $N = 4 ] && show not; [ $N = 4 ] || show or; [ $N = 4 ] && { show no; show no; }
for ((i = 8; i >= N; i -= 2)); do [ $i = 6 ] && continue; show $i; done
while [ $N -gt 0 ]; do N=$((N - 1)); if [ $N = 1 ]; then break; fi; show n$N; done
until [ $N -ge 3 ]; do N=$((N + 1)); L+=" $N"; done; show $L
f() { while [[ $# -gt 0 ]]; do case $1 in -a) Z=$2; shift 2;; --) shift; break;; *) shift;; esac; done; show $Z $# "$@"; return; show never; }
f -a 1 -b -- "x y" z
g() { if [ "$1" = deep ]; then f -a "$2"; else g deep "$1"; fi; }
g q
for v in one "two words"; do case $v in one) W=1;; *) W="$v";; esac; show "$W"; done
(X=sub; show $X); show $X
P="$A $X"; set -- 1 "2 3"; Q="$@"; show "$P" "$Q" $#
D=$(cat <<EOF
text of $X and \$X
EOF
); show "$D"
exit
show never
"""


@pytest.fixture
def bash(tmp_path):
    """`bash(text)`: the words of each call of `show`, as bash gives them."""

    def run(text):
        log = tmp_path / "log"
        log.write_bytes(b"")
        head = f'show() {{ printf "%s\\0" "$#" "$@" >>{log}; }}\n'
        file = tmp_path / "script.sh"
        file.write_text(head + text)
        subprocess.run(["bash", str(file)], env={"PATH": os.environ["PATH"]}, cwd=tmp_path, check=True, timeout=60)
        parts = log.read_text().split("\0")[:-1]
        calls = []
        while parts:
            count = int(parts.pop(0))
            calls.append(parts[:count])
            del parts[:count]
        return calls

    return run


def shown(text):
    return [[w.literal for w in s.words[1:]] for s in parse_script(text).statements if s.program == "show"]


def test_words_are_those_that_bash_gives(bash):
    mine = [words for words in shown(WORDS) if words not in (["never"], ["called"])]
    assert mine == bash(WORDS)


def test_commands_are_run_as_bash_runs_them(bash):
    mine = shown(FLOW)
    assert ["sub"] in mine
    mine.remove(["sub"])  # bash's subshell writes it as well, in its turn
    theirs = bash(FLOW)
    theirs.remove(["sub"])
    assert mine == theirs


def test_lines_blocks_and_conditions_are_known():
    script = parse_script(
        "#!/bin/bash -l\n#SBATCH -N 1\n# text\na \\\n  b\nwhile c; do\n  if d\n  then e; fi\ndone\ng() {\n h\n}\n"
    )
    assert script.shebang == "#!/bin/bash -l"
    assert [line for line, _ in script.comments] == [1, 2, 3]
    places = {s.program: (s.line, s.last, [b.line for b in s.blocks], s.is_condition) for s in script.statements}
    assert places == {
        "a": (4, 5, [], False), "c": (6, 6, [6], True), "d": (7, 7, [6, 7], True), "e": (8, 8, [6, 7], False),
        "h": (11, 11, [10], False),
    }  # fmt: skip
    assert script.block_ends == {7: 8, 6: 9, 10: 12}


@pytest.mark.parametrize(
    ("before", "word", "kind"),
    [
        ("", "$HOME/x", "variable"), ("", "${SCRATCH:-/tmp}", "variable"), ("", "$1", "parameter"), ("", "$(date)", "computed"),
        ("", "`date`", "computed"), ("", "$((RANDOM + 2))", "computed"), ("", "${A%%.*}", "computed"), ("A=$(date)", "$A", "variable"),
        ("read A", "$A", "computed"), ("if x; then A=1; fi", "$A", "computed"), ("", '"$@"', "list"), ("", "*.c", "shell"),
        ("x || A=1", "$A", "computed"), ("export A=$(date)", "$A", "variable"),
    ],
)  # fmt: skip
def test_what_only_the_shell_knows_is_no_text(before, word, kind):
    *_, last = parse_script(f"{before}\nshow {word}").statements
    (text,) = last.words[1:]
    assert text.literal is None
    assert kind in {piece.kind for piece in text.pieces}


def test_a_value_of_a_branch_does_not_replace_the_one_before_it():
    script = parse_script("A=1\nif x; then A=2; fi\nshow $A")
    assert script.statements[-1].words[1].literal == "1"


def test_loops_over_known_words_are_parameters():
    script = parse_script('V=(2 4)\nfor i in "${V[@]}" 8; do show $i; done\nfor j in $(seq 3); do show $j; done\n')
    first, second = (s for s in script.statements if s.program == "show")
    assert first.loops == {"i": ["2", "4", "8"]}
    assert [piece.kind for piece in first.words[1].pieces] == ["parameter"]
    assert second.loops == {"j": ["1", "2", "3"]}


@pytest.mark.parametrize(
    ("text", "says"),
    [("a\nb 'c\n", "script:2: a quote"), ('x "y', "script:1: a quote"), ("if a; then b\n", "script:1: if a has no end"),
     ("a $(b\n", "script:1: $("), ("for i in 1; do\nfi\n", "script:2: fi where done of line 1"), ("#!/bin/csh\nsetenv A b\n", "for csh"),
     ("#!/usr/bin/env python3\n", "for python3")],
)  # fmt: skip
def test_a_script_that_bash_would_refuse_is_refused_with_its_line(text, says):
    with pytest.raises(UsageError, match=says.replace("$(", r"\$\(")):
        parse_script(text)
