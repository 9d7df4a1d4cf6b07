"""What must fit together in a recipe: names in expressions, axes, figures, passes, files.

These checks read the plain data of the document, so that they also run where the recipe has other faults.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from nsw.errors import MOST_SHOWN, Diagnostic, did_you_mean, nearest
from nsw.metrics import check as metric_faults
from nsw.recipe.expressions import Expression, find_name, is_template
from nsw.recipe.matrix import Case, Matrix, MatrixFault, expansion, rests_of_ranges
from nsw.recipe.overrides import AFTER, BEFORE, SIDE
from nsw.recipe.program_files import source
from nsw.recipe.units import Fault, as_text, plain, plain_number, show_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from nsw.recipe.document import Document, KeyPath
    from nsw.recipe.model import Recipe

__all__ = ["check", "check_matrix"]

# names that hold the values of all parameters
_ALL_VALUES = frozenset({"case", "run"})


def unused_parameters(document: Document, cases: list[Case], names_in_texts: AbstractSet[str]) -> Iterator[Diagnostic]:
    """Warns of parameters for whose values the same is done again.

    Args:
        document: The recipe.
        cases: Its cases.
        names_in_texts: The names in its texts, those of parameters' own expressions included.
    """
    names = list(cases[0].params) if cases else []
    if names_in_texts & _ALL_VALUES or names_in_texts >= set(names):
        return
    alike: dict[tuple[str, ...], list[Case]] = {}
    for case in cases:
        alike.setdefault(tuple(repr(case.params[name]) for name in names if name in names_in_texts), []).append(case)
    for name in names:
        if name not in {*names_in_texts, SIDE} and any(
            len({repr(c.params[name]) for c in same}) > 1 for same in alike.values()
        ):
            hint = f"write {{{{ {name} }}}} where it belongs, such as in app: command, or take it out of the matrix"
            yield document.diagnostic(
                ("matrix", name), f"nothing uses {name}, so its cases are the same", hint=hint, key=True
            )


def repeated(document: Document, matrix: Matrix) -> Iterator[Diagnostic]:
    """Warns of values that are repeated in a list; in lists that vary together that has a meaning."""
    together = {name for group in matrix.zip for name in group}
    for name, values in matrix.parameters.items():
        if name in together or not isinstance(values, list):
            continue
        seen = set()
        for index, value in enumerate(values):
            if repr(plain_number(value)) in seen:
                message = f"{value!r} is listed a second time; it is one case"
                yield document.diagnostic(("matrix", name, index), message, hint="repeats: N runs every case N times")
            seen.add(repr(plain_number(value)))


CONTEXT = frozenset({"case", "run", "site", "nsw", "repeat", "pass"})  # what nsw itself gives to expressions
MATRIX_WORDS = frozenset({"exclude", "include", "zip"})
_SPACED = re.compile(r"[\d.]+( +[\d.]+)+")  # 64 128
_FROM_TO = re.compile(r"(\d+) ?[-:] ?(\d+)")
_DOLLAR = re.compile(r"\$(\{\{(?!\{|\s*['\"]).*?\}\})", re.DOTALL)  # {{ '{{' }} is how Jinja writes a brace
_JINJA_WORDS = frozenset(
    {"range", "true", "false", "none", "loop", "if", "else", "for", "in", "is", "and", "or", "not", "set"}
)

_TEMPLATES: tuple[tuple[str, ...], ...] = (
    ("app", "command"),
    ("app", "command", "*"),
    ("app", "setup", "*"),
    ("app", "env", "*"),
    ("app", "env", "*", "secret"),
    ("app", "env", "*", "plain"),
    ("app", "launcher", "processes"),
    ("app", "launcher", "prefix"),
    ("app", "launcher", "options", "*"),
    ("app", "build", "command"),
    ("app", "build", "gpus"),
    ("app", "container", "image"),
    ("app", "container", "options", "*"),
    ("resources", "*"),
    ("resources", "extra", "*"),
    ("passes", "*", "*", "time"),
    ("passes", "*", "*", "options", "*"),
    ("report", "model", "flop"),
    ("report", "model", "links", "*", "bytes"),
)


def check(document: Document, folder: Path | None) -> list[Diagnostic]:
    """The faults of a recipe's parts taken together.

    Args:
        document: The recipe, the site's section already laid over it.
        folder: Where the recipe's files are looked for; None: they are not.
    """
    faults = [
        *_parameter_names(document),
        *_expressions(document),
        *_report(document),
        *_metrics(document),
        *_pass_names(document),
    ]
    faults += _matrix_names(document)
    if folder is not None:
        faults += islice(_files(document, folder), MOST_SHOWN + 1)
    return faults


def check_matrix(document: Document, recipe: Recipe) -> tuple[list[Case], list[Diagnostic], list[Diagnostic]]:
    """The cases, the faults of their expansion, and warnings about parts of the matrix that do nothing."""
    try:
        expanded = expansion(recipe.matrix)
    except MatrixFault as fault:
        return [], [document.diagnostic(fault.path, fault.message, hint=fault.hint)], []
    warnings = [
        document.diagnostic(("matrix", "exclude", index), "this exclude matches no case")
        for index in expanded.idle_excludes
    ]
    warnings += [
        document.diagnostic(("matrix", "include", index), "this case exists already")
        for index in expanded.idle_includes
    ]
    warnings += _lists_in_quotes(document)
    warnings += _python_words(document)
    warnings += _dollars(document)
    warnings += repeated(document, recipe.matrix)
    told_apart = {SIDE} if recipe.app.before else set()
    warnings += unused_parameters(document, expanded.cases, _names_in_texts(document) | told_apart)
    faults = (
        []
        if expanded.cases
        else [document.diagnostic(("matrix",), "no case is left: the excludes match every case", key=True)]
    )
    if recipe.app.before and not any(case.params.get(SIDE) == BEFORE for case in expanded.cases):
        message = f"app.before is the program of cases whose {SIDE} is {BEFORE}, and there is no such case"
        hint = f"matrix: {{{SIDE}: [{BEFORE}, {AFTER}]}}"
        faults.append(document.diagnostic(("app", BEFORE), message, hint=hint, key=True))
    return expanded.cases, faults, warnings


def parameters(document: Document) -> list[str]:
    """The names that the matrix defines, by its lists or, where it has none, by its includes."""
    matrix = document.get(("matrix",))
    if not isinstance(matrix, dict):
        return []
    rests = rests_of_ranges(matrix)
    names = [name for name in matrix if name not in MATRIX_WORDS and name not in rests]
    included = (
        name for _, point in document.find("matrix", "include", "*") if isinstance(point, dict) for name in point
    )
    return names or list(dict.fromkeys(included))


def _parameter_names(document: Document) -> Iterator[Diagnostic]:
    for name in parameters(document):
        path: KeyPath = ("matrix", name)
        values = document.get(path)
        if isinstance(values, list) and any(isinstance(v, dict | list) for v in values) and nearest(name, MATRIX_WORDS):
            hint = did_you_mean(name, MATRIX_WORDS)
            yield document.diagnostic(
                path, f"{show_value(name)} is not a parameter: its values are not plain", hint=hint, key=True
            )
        if name in CONTEXT or name in _JINJA_WORDS:
            message = f"'{name}' has a meaning of its own in expressions and cannot name a parameter"
            yield document.diagnostic(path, message, hint=f"such as {name}_", key=True)
        elif not name.isidentifier() or not name.isascii() or iskeyword(name):
            message = f"{show_value(name)} cannot name a parameter"
            yield document.diagnostic(
                path, message, hint="letters, digits and '_', not starting with a digit", key=True
            )


def _expressions(document: Document) -> Iterator[Diagnostic]:
    names = set(parameters(document))
    for pattern in _TEMPLATES:
        for path, text in document.find(*pattern):
            yield from _unknown_names(document, path, text, names | CONTEXT)
    for name in parameters(document):
        for path, text in [*document.find("matrix", name), *document.find("matrix", name, "*")]:
            yield from _unknown_names(document, path, text, names)
    for path, text in document.find("matrix", "exclude", "*"):
        yield from _unknown_names(document, path, text, names)


def _names_in_texts(document: Document) -> set[str]:
    """The names in all expressions that change what a case does; an exclude only leaves cases out."""
    texts = [text for pattern in _TEMPLATES for _, text in document.find(*pattern)]
    texts += [text for name in parameters(document) for _, text in document.find("matrix", name, "*")]
    texts += [text for name in parameters(document) for _, text in document.find("matrix", name)]
    return {name for text in texts if is_template(text) for name in Expression.parse(text).names}


def _unknown_names(
    document: Document, path: KeyPath, text: Any, names_known: set[str] | frozenset[str]
) -> Iterator[Diagnostic]:
    if not is_template(text):
        return
    try:
        names = Expression.parse(text).names
    except Fault:
        return  # reported already, where the value's type was checked
    for name in sorted(names - names_known):
        offset = find_name(document.raw(path), name)
        mark = document.mark(path) if offset is None else document.mark_in_raw(path, offset, len(name))
        defined = f"the matrix defines: {', '.join(sorted(names_known - CONTEXT)) or 'none'}"
        near = did_you_mean(name, names_known)
        hint = f"{near} {defined}" if near else defined
        yield document.at(mark, f"the expression uses '{name}', which no matrix defines", hint=hint)


def _report(document: Document) -> Iterator[Diagnostic]:
    names = parameters(document)
    figures = list(document.get(("app", "figures")) or ()) if isinstance(document.get(("app", "figures")), dict) else []
    for path, allowed, subject in (
        (("report", "scaling", "axis"), names, "parameter of the matrix"),
        (("report", "compare", "parameter"), names, "parameter of the matrix"),
        (("report", "scaling", "figure"), figures, "figure of app.figures"),
        (("report", "compare", "figure"), figures, "figure of app.figures"),
    ):
        word = document.get(path)
        if isinstance(word, str) and word not in allowed:
            yield document.diagnostic(path, f"{show_value(word)} is not a {subject}", hint=_known(word, allowed))
    gate = document.get(("report", "gate"))
    for word in gate if isinstance(gate, dict) else ():
        if isinstance(word, str) and word not in figures:
            path = ("report", "gate", word)
            yield document.diagnostic(
                path, f"{show_value(word)} is not a figure of app.figures", hint=_known(word, figures)
            )


def _known(word: str, known: Sequence[str]) -> str:
    return did_you_mean(word, known) or (f"there are: {', '.join(known)}" if known else "there is none")


def _metrics(document: Document) -> Iterator[Diagnostic]:
    """Metrics that no chip has; what the site's chip has is checked when its name is known."""
    for path, options in document.find("passes", "*", "counters"):
        metrics = options.get("metrics") if isinstance(options, dict) else None
        if not isinstance(metrics, list) or not all(isinstance(name, str) for name in metrics):
            continue  # reported where the value's type was checked
        tool = options.get("tool")
        replay = str(options.get("replay"))
        for fault in metric_faults(metrics, None, tool if tool in {"ncu", "nvprof"} else None, replay=replay):
            yield document.diagnostic((*path, "metrics", fault.index), fault.message, hint=fault.hint)


def _pass_names(document: Document) -> Iterator[Diagnostic]:
    first: dict[str, KeyPath] = {}
    count: Counter[str] = Counter()
    for path, entry in document.find("passes", "*"):
        kind = entry if isinstance(entry, str) else next(iter(entry), None) if isinstance(entry, dict) else None
        options = entry.get(kind) if isinstance(entry, dict) else None
        name = options.get("name", kind) if isinstance(options, dict) else kind
        if not isinstance(name, str):
            continue
        count[name] += 1
        if name in first:
            first_mark = document.mark(first[name], key=True)
            hint = "give one of them a name of its own, such as {name: " + f"{name}-{count[name]}" + "}"
            yield document.diagnostic(
                path, f"another pass is also called {show_value(name)}; the first is at {first_mark}", hint=hint
            )
        first.setdefault(name, path)


def _matrix_names(document: Document) -> Iterator[Diagnostic]:
    names = parameters(document)
    listed = [name for name in document.get(("matrix",)) or () if name not in MATRIX_WORDS] if names else []
    for path, exclude in document.find("matrix", "exclude", "*"):
        for name in exclude if isinstance(exclude, dict) else ():
            if name not in names:
                yield _no_parameter(document, (*path, name), name, names)
    for path, point in document.find("matrix", "include", "*"):
        for name in point if isinstance(point, dict) and listed else ():
            if name not in listed:
                yield _no_parameter(document, (*path, name), name, listed)


def _no_parameter(document: Document, path: KeyPath, name: str, names: list[str]) -> Diagnostic:
    hint = did_you_mean(name, names) or f"the matrix defines: {', '.join(names) or 'none'}"
    return document.diagnostic(path, f"{show_value(name)} is not a parameter of the matrix", hint=hint, key=True)


def _files(document: Document, folder: Path) -> Iterator[Diagnostic]:
    for path, name in (*document.find("app", "files", "*"), *document.find("app", "before", "*")):
        if not isinstance(name, str) or not name or "\0" in name:
            continue
        file_path = source(folder, name)
        try:
            exists, can_be_copied = file_path.exists(), file_path.is_file() or file_path.is_dir()
        except OSError:
            exists = can_be_copied = False
        if not exists:
            hint = did_you_mean(name, _similar_files(folder, name))
            yield document.diagnostic(path, f"there is no file {show_value(name)} in the recipe's folder", hint=hint)
        elif not can_be_copied:
            message = f"{show_value(name)} is neither a regular file nor a folder, so it cannot be copied"
            yield document.diagnostic(path, message, hint="list regular files and folders only")


def _similar_files(folder: Path, name: str) -> list[str]:
    """The names of the files beside one that does not exist, written as it was."""
    parent = (folder / name).parent
    stem = name[: len(name) - len(name.rsplit("/", 1)[-1])]
    try:
        return [stem + entry.name for entry in islice(parent.iterdir(), 1000)]
    except OSError:
        return []


def _lists_in_quotes(document: Document) -> Iterator[Diagnostic]:
    """`gpus: 1,2,4`, `gpus: 1 2 4` and `gpus: 1-4` are one text to YAML."""
    for name in parameters(document):
        value = document.get(("matrix", name))
        if not isinstance(value, str) or is_template(value):
            continue
        hint = None
        if "," in value:
            hint = f"for several write [{value}]"
        elif _SPACED.fullmatch(value):
            hint = f"for several write [{', '.join(value.split())}]"
        elif ends := _FROM_TO.fullmatch(value):
            hint = f"for several write {{range: [{ends[1]}, {ends[2]}]}}"
        if hint is not None:
            yield document.diagnostic(("matrix", name), f"this is one value, {show_value(value)}", hint=hint)


def _python_words(document: Document) -> Iterator[Diagnostic]:
    """`True` is the same to YAML as `true`, and reaches the program so."""
    for name in parameters(document):
        for path in [("matrix", name), *(path for path, _ in document.find("matrix", name, "*"))]:
            node = document.node(path)
            if node is not None and isinstance(node.value, bool) and node.text != as_text(node.value):
                hint = f"quote it, '{node.text}', if the program needs it so"
                yield document.diagnostic(path, f"{node.text} reaches the program as {as_text(node.value)}", hint=hint)


def _dollars(document: Document) -> Iterator[Diagnostic]:
    """`${{ x }}` is what other tools write; here the `$` stays, as a character or as the shell's."""
    for pattern in _TEMPLATES:
        for path, text in document.find(*pattern):
            for match in _DOLLAR.finditer(text) if isinstance(text, str) else ():
                mark = document.mark_in_value(path, match.start(), len(match[0]))
                expression = plain(match[1])
                hint = f"write {expression}; for a $ before a value {{{{ '$' }}}}{expression}"
                yield document.at(
                    mark, "the $ before this expression is no part of it: it stays in the text", hint=hint
                )
