"""Kernel names for people: out of `void at::native::reduce_kernel<...>(...)`.

`short_name` is what a table of hot spots should say: the own name, with a class or namespace before it where
the own name says nothing (`Kernel`, `operator()`), and with the functor behind it where one template runs
them all (`vectorized_elementwise_kernel<FillFunctor>`).

Mangled names are asked of the C++ runtime's own `__cxa_demangle`. The runtime (libstdc++ or libc++) knows every corner
of the Itanium ABI, which the Python packages for it do not (lambdas, expressions), and every machine that runs numpy
has it. But a name comes out of an untrusted file, and a hundred characters of back-references can stand for a name of
2^50: so the calls are made in a child process with limits on memory and time, started when the first mangled name is
met and asked for many names at once. What it does not answer stays mangled.
"""

from __future__ import annotations

import atexit
import os
import re
import select
import sys
import threading
import time
from collections import Counter
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable, Iterator, Sequence


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
_GENERIC = frozenset((
    "kernel", "Kernel", "Kernel2", "device_kernel", "run", "main", "apply", "launch", "execute", "invoke", "compute",
    "call", "func", "function", "forward", "backward", "global_kernel", "gpu_kernel", "entry", "body", "lambda",
    "process", "update",
))  # fmt: skip
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
_LAUNCH = re.compile(r"cu(?:da)?(?:Graph)?Launch(?!Host)|hip(?:Module|Ext|Graph)?Launch")
_ENCLOSING = re.compile(r"([A-Za-z_$][\w$]*)\s*(?:<[^<>]*>)?\([^()]*\)(?: const)?::\{lambda")
_CUTLASS_ARGUMENT = re.compile(r"(?:Kernel2?|device_kernel)<(?:struct )?(cutlass_\w+)(?![\w:])")
_CORRELATION = re.compile(r"(?<!\s)\s*+\[\d+\]\s*\Z")  # each row of blanks is tried once
_FIRST_ARGUMENT = re.compile(r"IN(?:S[0-9A-Z]*_)?")  # a class in a namespace
_CUT_UNNAMED = re.compile(r"(?<![<\w])unnamed>::")  # as ncu prints <unnamed>:: of some names
_CAST = re.compile(r"\([\w:<> ]{1,80}\)(?=-?\d)")
_SCOPE = re.compile(r"(?:\b\w+|<?unnamed>|\(anonymous namespace\))::")
_NO_BRACKETS = str.maketrans("", "", "<>")
_API_VERSION = re.compile(r"_v\d{1,5}\Z")  # cudaLaunchKernel_v7000, cuMemAlloc_v2
_LENGTH = re.compile(r"L?(\d{1,4})")
_SOURCE_NAME = re.compile(r"_?_Z(?:L|N[KVr]*)?((?:L?\d+[A-Za-z_])|(?:S[tabsiod_]))")


@lru_cache(maxsize=_CACHED)
def demangle(name: str) -> str:
    """The C++ name behind an Itanium ABI name; unchanged when it is not mangled or cannot be demangled.

    For many names at once `demangle_all` is several times faster.
    """
    return demangle_all([name])[name] if is_mangled_name(name) else name


def name_columns_by_printed_name(printed_names: Iterable[str]) -> dict[str, dict[str, str | None]]:
    """The columns `name` (demangled), `short_name` and `mangled_name` of each name, as a report has it."""
    return {
        name: {"name": clear, "short_name": short_name(clear), "mangled_name": name if is_mangled_name(name) else None}
        for name, clear in demangle_all(printed_names).items()
    }


@lru_cache(maxsize=_CACHED)
def short_name(name: str) -> str:
    """A name for a table of some 40 columns; `[CUDA memcpy HtoD]` and names that are plain stay."""
    name = demangle_fully(name)
    if match := _CUTLASS_ARGUMENT.search(name):
        return match[1]
    scopes, own_name, arguments = _scopes_name_and_template_arguments(name)
    short = own_name
    if own_name in _GENERIC or own_name.startswith("operator"):
        short = "::".join([*_distinguishing_scope(scopes), own_name])
    if (
        arguments
        and len(own_name) <= _LONGEST_HINT
        and _WRAPPERS.match(own_name)
        and (hint := _first_telling_template_word(arguments, own_name))
    ):
        short = f"{short}<{hint}>"
    return name if not short or short[0].isdigit() else short  # `string 41`: an id in the place of a lost name


def api_name_without_version(name: str) -> str:
    """A CUDA call less the version of its interface, as nvprof has it: cudaMemcpy_v3020, cuMemAlloc_v2."""
    return _API_VERSION.sub("", name)


def without_spaces(name: str) -> str:
    """A name without spaces, which the profilers put at different places: `float *`, `float*`."""
    return "".join(name.split())


@lru_cache(maxsize=_CACHED)
def comparable_name(name: str) -> str:
    """A name without what nsys prints and ncu leaves out: casts of template arguments, some namespaces.

    nsys has `void at::native::fill<(int)4>(T1 *)` where ncu has `void fill<4>(T1 *)`, and cuts `<unnamed>`.
    """
    name = _CAST.sub("", name[:_LONGEST])
    return "".join(_SCOPE.sub("", name).translate(_NO_BRACKETS).split())


def demangle_fully(name: str) -> str:
    """A name demangled as far as it can be, without what `nvprof` puts after it."""
    name = _CUT_UNNAMED.sub("", name.strip()[:_LONGEST])
    if is_mangled_name(name):
        demangled = demangle(name)
        return _plain_names_of_mangled(name) if demangled == name else demangled
    if name.endswith("]") and not name.startswith("["):
        name = _CORRELATION.sub("", name)
    return name


def _scopes_name_and_template_arguments(name: str) -> tuple[list[str], str, str]:
    """The scopes, the own name and the text of its template arguments."""
    if name.startswith("[") or not name:
        return [], name, ""
    outline, arguments = _mark_bracketed_groups(name)
    outline = _without_parameters(outline.split(" -> ")[0].strip())
    has_arguments = outline.endswith("\x01")
    parts = [_clean_name_part(p) for p in _without_return_type(outline).split("::")]
    own_name = parts.pop() if parts else name
    if own_name.endswith(">") and not own_name.startswith("operator"):
        # ncu prints `f<<unnamed>::g<T>>` as `f<unnamed>::g<T>>`: one > too many
        *parts, own_name = _without_return_type(name.partition("<")[0]).split("::")
    if own_name == "{lambda}" and parts:
        own_name = f"{parts.pop() or 'main'}::{{lambda}}"
    elif own_name.startswith("operator") and parts and parts[-1] == "{lambda}":
        parts.pop()
        own_name = f"{parts.pop() if parts else ''}::{{lambda}}".removeprefix("::")
    return parts, own_name, arguments if has_arguments else ""


def _mark_bracketed_groups(name: str) -> tuple[str, str]:
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


def _clean_name_part(text: str) -> str:
    text = text.replace("\x01", "").replace("\x02", "").strip()
    return "{lambda}" if "\x03" in text else text


def _distinguishing_scope(scopes: list[str]) -> list[str]:
    telling = [s for s in scopes if s not in _EMPTY_SCOPES and not s.startswith("{")]
    return telling[-1:]


def _first_telling_template_word(arguments: str, own_name: str) -> str:
    """The first word of the template arguments that names the work, rather than plumbing."""
    arguments = arguments[:_LONGEST_ARGUMENTS]
    match = _ENCLOSING.search(arguments)
    if match and not _is_plumbing_word(match[1]):
        return match[1]
    for word in _WORD.finditer(arguments):
        if not (arguments.startswith("::", word.end()) or word[0] == own_name or _is_plumbing_word(word[0])):
            return word[0]
    return ""


def _is_plumbing_word(word: str) -> bool:
    return len(word) > _LONGEST_HINT or _PLUMBING.match(word) is not None


def _plain_names_of_mangled(mangled: str) -> str:
    """The plain names at the start of a mangled name that could not be demangled, joined by `::`.

    With the first template argument, where that is a class: `cutlass::Kernel<ImplicitGemmConvolution>`.
    """
    match = _SOURCE_NAME.match(mangled)
    if not match:
        return mangled
    nested = mangled.startswith(("_ZN", "__ZN"))
    parts, at = _parse_length_prefixed_names(mangled, match.start(1), read_every=nested)
    name = "::".join(p for p in parts if not p.startswith("_GLOBAL__N_"))
    argument = _FIRST_ARGUMENT.match(mangled, at)
    inner = _parse_length_prefixed_names(mangled, argument.end(), read_every=True)[0] if argument else []
    return (f"{name}<{inner[-1]}>" if name and inner else name) or mangled


def _parse_length_prefixed_names(mangled: str, start: int, *, read_every: bool) -> tuple[list[str], int]:
    """Names with their lengths before them (`4conv6kernel`), all or the first, and where they end."""
    parts: list[str] = []
    while number := _LENGTH.match(mangled, start):
        end = number.end() + int(number[1])
        if end > len(mangled):
            break
        parts.append(mangled[number.end() : end])
        start = end
        if not read_every:
            break
    return parts, start


def number_repeated_names(names: Sequence[str]) -> list[str]:
    """Names for people; several instances of one template are numbered, since they are not the same kernel."""
    often, seen = Counter(names), Counter[str]()
    result = []
    for name in names:
        seen[name] += 1
        result.append(f"[{seen[name]}] {name}" if often[name] > 1 else name)
    return result


LONGEST = 8192  # characters of a mangled name that are worth asking for
_LONGEST_ANSWER = 65536
_BATCH_BYTES = 16384  # of questions at a time: less than a pipe holds, so that neither side blocks
_START_SECONDS = 20.0  # a cold file system of a cluster can be that slow
_BATCH_SECONDS = 1.5
_SINGLE_SECONDS = 0.5  # for each name of a batch that had no answer
_MOST_FAILURES = 6  # then the rest of the session's names stay as they are

# Runs in the child, isolated from the user's site-packages; a line in, a line out.
_CHILD = f"""
import ctypes, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except (ImportError, ValueError, OSError):
    pass
for name in ("libstdc++.so.6", "libc++abi.so.1", "libc++.so.1", "libc++.1.dylib"):
    try:
        library = ctypes.CDLL(name)
        break
    except OSError:
        continue
else:
    sys.exit(3)
convert, free = library.__cxa_demangle, ctypes.CDLL(None).free
convert.restype, free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
print("ready", flush=True)
for line in sys.stdin.buffer:
    status, answer = ctypes.c_int(), line[:-1]
    found = convert(answer, None, None, ctypes.byref(status))
    if found:
        text = ctypes.string_at(found)
        free(found)
        if status.value == 0 and len(text) <= {_LONGEST_ANSWER}:
            answer = text
    sys.stdout.buffer.write(answer.replace(b"\\n", b" ") + b"\\n")
    sys.stdout.buffer.flush()
"""


def demangle_all(names: Iterable[str]) -> dict[str, str]:
    """Each distinct name with its demangled form; with itself where there is none."""
    answers = {name: name for name in names}
    questions = [n for n in answers if is_mangled_name(n) and len(n) <= LONGEST and n.isascii() and n.isprintable()]
    with _LOCK:
        for batch in _batches_of_names(questions):
            answers.update(zip(batch, _demangle_batch_with_retries(batch), strict=True))
    return answers


def is_launch_call(api_call: str) -> bool:
    """Whether a call of the CUDA or HIP API launches a kernel or a graph."""
    return _LAUNCH.match(api_call) is not None


def is_mangled_name(name: str) -> bool:
    """Whether the name looks like one of the Itanium ABI's (`_Z` or, from Mach-O, `__Z`)."""
    return name.startswith(("_Z", "__Z"))


def _batches_of_names(questions: list[str]) -> Iterator[list[str]]:
    rest = iter(questions)
    while first := list(islice(rest, 1)):
        size = len(first[0])
        batch = first
        for name in rest:
            batch.append(name)
            size += len(name) + 1
            if size > _BATCH_BYTES:
                break
        yield batch


def _demangle_batch_with_retries(batch: list[str]) -> list[str]:
    """The batch's answers; after a failure one name at a time, so that one bad name costs itself alone."""
    answers = _CHILD_PROCESS.demangle_names(batch, _BATCH_SECONDS)
    if answers is not None:
        return answers
    return [(_CHILD_PROCESS.demangle_names([name], _SINGLE_SECONDS) or [name])[0] for name in batch]


class _DemanglerProcess:
    """The child process: started late, restarted after a failure, given up after several."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._failures = 0
        self._owner = 0  # a fork of this process must not share the child's pipes

    def demangle_names(self, names: list[str], timeout_s: float) -> list[str] | None:
        """An answer a name, or None when the child died or took too long."""
        if self._failures >= _MOST_FAILURES:
            return None
        try:
            process = self._process if self._process and self._owner == os.getpid() else self._start()
            assert process.stdin is not None
            process.stdin.write("".join(f"{n}\n" for n in names).encode("ascii"))
            process.stdin.flush()
            return self._read_lines(len(names), time.monotonic() + timeout_s)
        except OSError:
            self._failures += 1
            self.stop()
            return None
        except BaseException:  # Ctrl-C, a limit: its answers would be taken for those of the next names
            self.stop()
            raise

    def _start(self) -> subprocess.Popen[bytes]:
        if not sys.executable:
            self._failures = _MOST_FAILURES
            raise OSError("there is no Python interpreter to run the demangler")
        self._owner = os.getpid()
        import subprocess  # where no name is mangled it is not needed

        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._read_lines(1, time.monotonic() + _START_SECONDS)
        return self._process

    def _read_lines(self, how_many: int, deadline: float) -> list[str]:
        assert self._process is not None
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        received = bytearray()
        while (line_count := received.count(b"\n")) < how_many:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise TimeoutError(f"{how_many - line_count} names were not answered")
            piece = os.read(descriptor, 1 << 20)
            if not piece:
                raise BrokenPipeError("the demangler ended")
            received += piece
        return received.decode("utf-8", errors="replace").split("\n")[:how_many]

    def stop(self) -> None:
        """End the child if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                pass  # what was still to be written to a dead child
        process.wait()


_LOCK = threading.Lock()  # one child for all threads: answers are in the order of the questions
_CHILD_PROCESS = _DemanglerProcess()
atexit.register(_CHILD_PROCESS.stop)


def gpu_operation_kind(operation_name: str) -> str:
    """kernel, memcpy, memset or um; `[CUDA memcpy HtoD]` is a memcpy, `[Unified Memory GPU page faults]` um."""
    if not operation_name.startswith("["):
        return "kernel"
    if operation_name.startswith("[Unified Memory"):
        return "um"
    lower = operation_name.lower()
    return "memcpy" if "memcpy" in lower else "memset" if "memset" in lower else "kernel"
