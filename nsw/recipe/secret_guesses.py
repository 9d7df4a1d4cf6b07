"""Where secret values stand in a text that no parser understands: guessed, and rather too much than too little."""

from __future__ import annotations

import re

from nsw.recipe.secrets import looks_secret, passwords

_KEY = re.compile(r"""(?<![A-Za-z0-9_])[0-9]*+(?P<key>[A-Za-z0-9_]++)(?:["']?\s*+:\s*+|=)""")
_BEGINS_LINE = re.compile(r"""[ \t]*+(?:[-?][ \t]++)*+["']?[0-9]*+""")
_FORM = re.compile(r"""(?:\{\s*+)?["']?(?:plain|secret)["']?\s*+:""")
_FROM_ENV = re.compile(
    r"""(?:\{\s*+)?["']?from_env["']?\s*+:\s*+(["']?)[A-Za-z_][A-Za-z0-9_]*+\1[ \t]*+(?:[}\r\n]|$)"""
)
_QUOTED = re.compile(r""""(?:\\.|[^"\\])*+(?:"|$)|'(?:''|[^'])*+(?:'|$)""", re.DOTALL)
_NEXT_IN_BRACES = re.compile(
    r"""(?=,\s*+["']?[A-Za-z0-9_.-]++["']?\s*+:(?:[\s"'{\[]|$)|[}\]]+(?:[\s,]|$))""", re.MULTILINE
)
_LINE_END = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]|$")
_IS_KEY = re.compile(r"""(?:-[ \t]++)*+["']?[A-Za-z0-9_.-]++["']?[ \t]*+:(?:\s|$)|[}\]#]|---|$""")
_ONE_WORD = re.compile(r"[^\s:]+")
_ALIAS = re.compile(r"\*([^\s,\[\]{}]+)")
_ANCHOR = re.compile(r"&([^\s,\[\]{}]++)\s++")
_ENDS = frozenset("\n\r\x85\u2028\u2029")


def guessed_spans(text: str) -> list[tuple[int, int]]:
    """Where values of keys that look secret begin and end, in the order of the text; none overlaps another."""
    found: list[tuple[int, int]] = []
    aliases: set[str] = set()
    position = 0
    while (match := _KEY.search(text, position)) is not None:
        begin = position = match.end()
        if not looks_secret(match["key"]) or _FORM.match(text, begin) or _is_from_env(match["key"], text, begin):
            continue
        position = max(_end(text, match), begin)
        found.append((begin, position))
        if alias := _ALIAS.match(text, begin):
            aliases.add(alias[1])
    anchors = (anchor for anchor in _ANCHOR.finditer(text) if aliases and anchor[1] in aliases)
    found += [(anchor.end(), _end_of_line(text, anchor.end())) for anchor in anchors]
    return sorted(found)


def masked(line: str) -> str:
    """A text with `*` for what seems to be secret in it; columns stay."""
    characters = list(line)
    for begin, end in guessed_spans(line):
        characters[begin:end] = "*" * (end - begin)
    for begin, end in passwords("".join(characters)):
        characters[begin:end] = "*" * (end - begin)
    return "".join(characters)


def _is_from_env(key: str, text: str, begin: int) -> bool:
    return key.lower() == "secret" and _FROM_ENV.match(text, begin) is not None


def _end(text: str, key: re.Match[str]) -> int:
    """Where the value of a key ends."""
    begin = key.end()
    line = _line_begin(text, key.start())
    prefix = _BEGINS_LINE.match(text, line)
    in_block = prefix is not None and prefix.end() >= key.start("key")
    quoted = _QUOTED.match(text, begin)
    end = quoted.end() if quoted else begin
    if text[key.end() - 1] == "=":
        return _end_of_line(text, end)
    if not in_block:
        after = _NEXT_IN_BRACES.search(text, end)
        return after.start() if after else len(text)
    # what stands behind a quote may be more of a value that holds one
    return _lines_below(text, _end_of_line(text, end), key, key.start("key") - line)


def _lines_below(text: str, end: int, key: re.Match[str], indent: int) -> int:
    """The end of the lines that go on with the value of a key in column `indent`, the first of which ends at `end`."""
    of_block = text[key.end() : key.end() + 1] in {"|", ">", ""} or _line_begin(text, key.end()) > key.start()
    while end < len(text):
        begin = _LINE_END.match(text, end)
        assert begin is not None
        last = _end_of_line(text, begin.end())
        line = text[begin.end() : last]
        stripped = line.strip()
        is_deeper = len(line) - len(line.lstrip()) > indent
        if stripped and not is_deeper:  # badly indented, which may be why this is not YAML
            goes_on = not _IS_KEY.match(stripped) if of_block else _ONE_WORD.fullmatch(stripped) is not None
            if not goes_on:
                break
        if last <= end:
            break
        end = last
    return end


def _line_begin(text: str, position: int) -> int:
    # each sign is looked for behind the last one found: a search for one that is nowhere would go through all the text
    begin = max(text.rfind("\n", 0, position), 0)
    for sign in "\r\x85\u2028\u2029":
        begin = max(begin, text.rfind(sign, begin, position))
    return begin + 1 if text[begin : begin + 1] in _ENDS else begin


def _end_of_line(text: str, position: int) -> int:
    found = _LINE_END.search(text, position)
    return found.start() if found else len(text)
