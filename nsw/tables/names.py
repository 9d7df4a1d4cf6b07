"""Kernel names for people and for filters: out of `void at::native::reduce_kernel<...>(...)`.

`base_name` is the function's own name and nothing else: what `ncu --kernel-name` compares with.
`short_name` is what a table of hot spots should say: the own name, with a class or namespace before it where
the own name says nothing (`Kernel`, `operator()`), and with the functor behind it where one template runs
them all (`vectorized_elementwise_kernel<FillFunctor>`).
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from nsw.tables.demangling import demangle_all, is_mangled

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LONGEST = 16384  # characters of a name that are looked at
_LONGEST_ARGUMENTS = 2048  # of them that are searched for the functor
_LONGEST_HINT = 80
_CACHED = 65536

_OPERATOR = (
    r"\boperator\s*(?:\(\s*\)|\[\s*\]|<=>|<<=|>>=|->\*|->|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--"
    r"|[-+*/%^&|]=|[-+*/%^&|~!=<>,])"
)
_ANONYMOUS = r"\(anonymous namespace\)|<unnamed>|\(anonymous class\)|\{anonymous\}|\(unnamed\)"
_TOKEN = re.compile(rf"(?P<operator>{_OPERATOR})|(?P<anonymous>{_ANONYMOUS})|->|[<>(){{}}\[\]]")
_PAIR = {"<": ">", "(": ")", "{": "}", "[": "]"}
# What stands in for a group in the outline of a name; none of these is in a C++ name.
_MARK = {"<": "\x01", "(": "\x02", "{": "\x03", "[": ""}

# Names that say nothing without what is before them.
_GENERIC = frozenset(
    (
        "kernel",
        "Kernel",
        "Kernel2",
        "device_kernel",
        "run",
        "main",
        "apply",
        "launch",
        "execute",
        "invoke",
        "compute",
        "call",
        "func",
        "function",
        "forward",
        "backward",
        "global_kernel",
        "gpu_kernel",
        "entry",
        "body",
        "lambda",
        "process",
        "update",
    )
)
_EMPTY_SCOPES = frozenset({"detail", "impl", "Impl", "internal", "kernel", "core", ""})

# Templates that run somebody else's functor: own name -> whether the argument is all that matters.
_WRAPPERS = re.compile(
    r"(?:\w*elementwise\w*kernel\w*|reduce_kernel|reduce_\w+_kernel|multi_tensor_apply_kernel|kernelPointwiseApply\w*"
    r"|_?cub_?kernel_?agent|_kernel_agent|(?:parallel_)?for(?:all|_each)\w*|EigenMetaKernel|tensor_kernel_scan\w*"
    r"|cuda_parallel_launch\w*|static_kernel"
    r"|device_kernel|Kernel2?|kernel|Kernel\w*Launch\w*|launch\w*|invoke\w*|run\w*)\Z"
)
# Words of template arguments that name plumbing, not the work.
_PLUMBING = re.compile(
    r"(?:void|bool|char|short|int|long|float|double|unsigned|signed|const|true|false|half|__half2?|__nv_\w+|auto|class"
    r"|struct|enum|typename|lambda|operator|unnamed|anonymous|namespace|type|size_t|u?int\d+_t|nullptr_t|std|c10"
    r"|B?Float16|BFloat16|complex|[ABC]?Unary\w*|Binary\w*|[AB]UnaryFunctor|\w*[Ww]rapper(?:_t)?|ReduceOp|array|Array|tuple|Params"
    r"|tag|gpu|cpu|value|\w*Config|\w*Calculator\w*|TensorIterator\w*|memory|LaunchBounds|Cuda|CUDA|gpu_kernel\w*|Parallel(?:For|Reduce|Scan)|FunctorAdapter"
    r"|\w{1,2}|\d\w*)\Z"
)
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_ENCLOSING = re.compile(r"([A-Za-z_$][\w$]*)\s*(?:<[^<>]*>)?\([^()]*\)(?: const)?::\{lambda")
_CUTLASS_ARGUMENT = re.compile(r"(?:Kernel2?|device_kernel)<(?:struct )?(cutlass_\w+)(?![\w:])")
_CORRELATION = re.compile(r"(?<!\s)\s*+\[\d+\]\s*\Z")  # each row of blanks is tried once
_FIRST_ARGUMENT = re.compile(r"IN(?:S[0-9A-Z]*_)?")  # a class in a namespace
_API_VERSION = re.compile(r"_v\d{1,5}\Z")  # cudaLaunchKernel_v7000, cuMemAlloc_v2
_LENGTH = re.compile(r"L?(\d{1,4})")
_SOURCE_NAME = re.compile(r"_?_Z(?:L|N[KVr]*)?((?:L?\d+[A-Za-z_])|(?:S[tabsiod_]))")


@lru_cache(maxsize=_CACHED)
def demangle(name: str) -> str:
    """The C++ name behind an Itanium ABI name; unchanged when it is not mangled or cannot be demangled.

    For many names at once `nsw.tables.demangling.demangle_all` is several times faster.
    """
    return demangle_all([name])[name] if is_mangled(name) else name


def names_of(printed: Iterable[str]) -> dict[str, dict[str, str | None]]:
    """The columns `name` (demangled), `short_name` and `mangled_name` of each name, as a report has it."""
    return {
        name: {"name": clear, "short_name": short_name(clear), "mangled_name": name if is_mangled(name) else None}
        for name, clear in demangle_all(printed).items()
    }


@lru_cache(maxsize=_CACHED)
def short_name(name: str) -> str:
    """A name for a table of some 40 columns; `[CUDA memcpy HtoD]` and names that are plain stay."""
    name = _readable(name)
    if found := _CUTLASS_ARGUMENT.search(name):
        return found[1]
    scopes, own, arguments = _dissect(name)
    shown = own
    if own in _GENERIC or own.startswith("operator"):
        shown = "::".join([*_telling_scope(scopes), own])
    if arguments and len(own) <= _LONGEST_HINT and _WRAPPERS.match(own) and (hint := _hint(arguments, own)):
        shown = f"{shown}<{hint}>"
    return name if not shown or shown[0].isdigit() else shown  # `string 41`: an id in the place of a lost name


@lru_cache(maxsize=_CACHED)
def base_name(name: str) -> str:
    """The function's own name alone, as Nsight Compute's `--kernel-name` (base `function`) compares it."""
    return _dissect(_readable(name))[1] or name


def api_name(name: str) -> str:
    """A CUDA call less the version of its interface, as nvprof has it: cudaMemcpy_v3020, cuMemAlloc_v2."""
    return _API_VERSION.sub("", name)


def _readable(name: str) -> str:
    name = name.strip()[:_LONGEST]
    if is_mangled(name):
        whole = demangle(name)
        return _source_names(name) if whole == name else whole
    if name.endswith("]") and not name.startswith("["):
        name = _CORRELATION.sub("", name)
    return name


def _dissect(name: str) -> tuple[list[str], str, str]:
    """The scopes, the own name and the text of its template arguments."""
    if name.startswith("[") or not name:
        return [], name, ""
    outline, arguments = _outline(name)
    outline = _without_parameters(outline.split(" -> ")[0].strip())
    has_arguments = outline.endswith("\x01")
    parts = [_part(p) for p in _without_return_type(outline).split("::")]
    own = parts.pop() if parts else name
    if own == "{lambda}" and parts:
        own = f"{parts.pop() or 'main'}::{{lambda}}"
    elif own.startswith("operator") and parts and parts[-1] == "{lambda}":
        parts.pop()
        own = f"{parts.pop() if parts else ''}::{{lambda}}".removeprefix("::")
    return parts, own, arguments if has_arguments else ""


def _outline(name: str) -> tuple[str, str]:
    """The name with a mark for each bracketed group, and the text inside its last `<...>`."""
    if not any(c in name for c in "<({["):
        return name, ""
    pieces: list[str] = []
    closers: list[str] = []
    awaited = Counter[str]()  # how often each is among the closers, which may be thousands
    start = group = 0
    arguments = ""
    for token in _TOKEN.finditer(name):
        text = token[0]
        if token.lastgroup == "operator" or text == "->":
            continue
        if token.lastgroup == "anonymous":
            if not closers:
                pieces += (name[start : token.start()], "{anonymous}")
                start = token.end()
        elif text in _PAIR:
            if not closers:
                pieces.append(name[start : token.start()])
                group = token.end()
                pieces.append(_MARK[text])
            closers.append(_PAIR[text])
            awaited[_PAIR[text]] += 1
        elif closers and (closers[-1] == text or (text != ">" and awaited[text])):
            while (closed := closers.pop()) != text:  # a > of an expression is inside brackets and closes nothing
                awaited[closed] -= 1
            awaited[text] -= 1
            if not closers:
                if text == ">":
                    arguments = name[group : token.start()]
                start = token.end()
    if closers:  # cut short in the report
        if closers[0] == ">":
            arguments = name[group:]
    else:
        pieces.append(name[start:])
    return "".join(pieces), arguments


def _without_parameters(outline: str) -> str:
    at = outline.rfind("\x02")
    while at >= 0 and outline.startswith("::", at + 1):
        at = outline.rfind("\x02", 0, at)
    return outline[:at].rstrip() if at > 0 else outline


def _without_return_type(outline: str) -> str:
    at = outline.rfind("operator")  # `operator int`, `operator new[]` have blanks of their own
    head = outline if at < 0 else outline[:at].rstrip()
    tail = "" if at < 0 else outline[at:]
    if at >= 0 and not head.endswith("::"):
        return tail
    return head.split(" ")[-1].lstrip("*&") + tail


def _part(text: str) -> str:
    text = text.replace("\x01", "").replace("\x02", "").strip()
    return "{lambda}" if "\x03" in text else text


def _telling_scope(scopes: list[str]) -> list[str]:
    telling = [s for s in scopes if s not in _EMPTY_SCOPES and not s.startswith("{")]
    return telling[-1:]


def _hint(arguments: str, own: str) -> str:
    """The first word of the template arguments that names the work, rather than plumbing."""
    arguments = arguments[:_LONGEST_ARGUMENTS]
    found = _ENCLOSING.search(arguments)
    if found and not _is_plumbing(found[1]):
        return found[1]
    for word in _WORD.finditer(arguments):
        if not (arguments.startswith("::", word.end()) or word[0] == own or _is_plumbing(word[0])):
            return word[0]
    return ""


def _is_plumbing(word: str) -> bool:
    return len(word) > _LONGEST_HINT or _PLUMBING.match(word) is not None


def _source_names(mangled: str) -> str:
    """The plain names at the start of a mangled name that could not be demangled, joined by `::`.

    With the first template argument, where that is a class: `cutlass::Kernel<ImplicitGemmConvolution>`.
    """
    found = _SOURCE_NAME.match(mangled)
    if not found:
        return mangled
    nested = mangled.startswith(("_ZN", "__ZN"))
    parts, at = _counted_names(mangled, found.start(1), every=nested)
    name = "::".join(p for p in parts if not p.startswith("_GLOBAL__N_"))
    argument = _FIRST_ARGUMENT.match(mangled, at)
    inner = _counted_names(mangled, argument.end(), every=True)[0] if argument else []
    return (f"{name}<{inner[-1]}>" if name and inner else name) or mangled


def _counted_names(mangled: str, at: int, *, every: bool) -> tuple[list[str], int]:
    """Names with their lengths before them (`4conv6kernel`), all or the first, and where they end."""
    parts: list[str] = []
    while number := _LENGTH.match(mangled, at):
        end = number.end() + int(number[1])
        if end > len(mangled):
            break
        parts.append(mangled[number.end() : end])
        at = end
        if not every:
            break
    return parts, at


def numbered(names: Sequence[str]) -> list[str]:
    """Names for people; several instances of one template are numbered, since they are not the same kernel."""
    often, seen = Counter(names), Counter[str]()
    result = []
    for name in names:
        seen[name] += 1
        result.append(f"[{seen[name]}] {name}" if often[name] > 1 else name)
    return result
