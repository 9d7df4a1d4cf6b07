"""The entry point: errors become messages and exit codes here, and nowhere else."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from nsw.apart import allow_fork
from nsw.errors import Exit, InputError, NswError, UsageError
from nsw.safe_import_path import drop_relative_pythonpath

if TYPE_CHECKING:
    import typer


_DRIVES = frozenset({"run", "resume", "retry"})
_EXTRA = "Got unexpected extra argument(s) ("
_WORDS = {
    "Value error, ": "",
    "Input should be a valid integer, unable to parse string as an integer": "it is not a whole number",
    "Input should be greater than or equal to": "it must be at least",
}


def main() -> None:
    """`nsw ...`: ends the process with the exit code of docs/internals.md."""
    gc.set_threshold(100_000, 50, 100)  # what a command makes stays: to look for garbage took a fifth of a large answer
    os.umask(os.umask(0o022) | 0o022)  # whatever the user's is, nobody else writes what nsw makes
    drop_relative_pythonpath()
    allow_fork()
    try:
        code = _complete_or_run()
    except SystemExit:
        raise
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    except BaseException:  # noqa: BLE001  a bug: processes and threads that still work must not be waited for
        sys.excepthook(*sys.exc_info())
        code = 1
    _exit_process(code)


def _exit_process(code: int) -> NoReturn:
    """End the process after what must finish first, without the interpreter's own shutdown.

    Arrow's threads may still begin or end then, and the process would end with SIGABRT after a good answer ("terminate
    called without an active exception": 22 of 160 small campaigns). Besides, it takes a sixth of `nsw plan`.
    """
    atexit._run_exitfuncs()  # noqa: SLF001  # there is no other way to run them without what follows them
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def _complete_or_run() -> int:
    """Answer the shell's completion request, or run the command line."""
    if (shell_request := os.environ.get("_NSW_COMPLETE")) is not None:
        from nsw.cli.completion import answer

        if (code := answer(shell_request)) is not None:
            return code
    return run(sys.argv[1:])


def run(arguments: list[str]) -> int:
    """Carry out a command line; the exit code."""
    if arguments == ["--version"]:  # the one question that needs no command-line parser
        from nsw.version import __version__

        print(f"nsw {__version__}")
        return Exit.GOOD
    import io

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files may be no text
    try:
        return _flush_stdout(_run_with_typer(arguments))
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except (BrokenPipeError, SystemExit) as end:
        # the parser of command lines, and what prints its help, end the process with 1 where the pipe is closed
        if isinstance(end, SystemExit) and not isinstance(end.__context__, BrokenPipeError):
            raise
        # who reads on no longer has seen enough; a campaign that stops for it has not come to its end
        return _discard_stdout(Exit.SOME_FAILED if arguments[:1] and arguments[0] in _DRIVES else Exit.GOOD)
    except NswError as fault:
        if fault.exit_code is Exit.UNREACHABLE and fault.hint is None:
            fault.hint = "correct that, then run the same command again"
        show(fault)
        return fault.exit_code
    except OSError as fault:
        return _show_system_fault(
            f"{fault.filename}: {fault.strerror}" if fault.filename else str(fault.strerror or fault)
        )
    except Exception as fault:
        import sqlite3  # only here: to load it takes a while

        if not isinstance(fault, sqlite3.Error):
            raise
        return _show_system_fault(f"the campaign's state cannot be used: {fault}")


def _run_with_typer(arguments: list[str]) -> int:
    """Run a command line with typer's parser."""
    import typer

    from nsw.cli.application import COMMANDS, daily_help, program, program_of_help, unknown_command_error
    from nsw.cli.topics import TOPICS, show_topic

    arguments = arguments or ["--help"]
    if arguments in (["--help"], ["-h"], ["help"]) and "_NSW_COMPLETE" not in os.environ:  # which typer answers
        sys.stdout.write(daily_help())
        return Exit.GOOD
    if arguments[0] == "help":  # of all commands, of one, or on a topic
        topic = arguments[1]
        if topic in TOPICS:
            from nsw.present.terminal import console

            show_topic(console(), topic)
            return Exit.GOOD
        if topic not in COMMANDS and not topic.startswith("-"):
            raise unknown_command_error(topic, list(TOPICS))
        arguments = [word for word in arguments[1:] if word != "--all"] + ["--help"]
    word = arguments[0]
    try:
        if word.startswith("-"):  # an option of nsw itself, none of which takes a value
            app = program_of_help()
        elif word in COMMANDS:
            app = program([word])
        else:
            raise unknown_command_error(word)
        return app(args=arguments, prog_name="nsw", standalone_mode=False) or Exit.GOOD
    except typer.TyperException as fault:
        show(_as_usage_error(fault))
        return Exit.BAD_INPUT
    except typer.Abort:
        return Exit.INTERRUPTED


def _as_usage_error(fault: typer.TyperException) -> NswError:
    """Convert an error of typer to one of nsw."""
    context = getattr(fault, "ctx", None)
    hint = f"`{context.command_path} --help` lists the options" if context is not None else None
    message = fault.format_message()
    for words_of_pydantic, plain_words in _WORDS.items():
        message = message.replace(words_of_pydantic, plain_words)
    options = set() if context is None else {name for parameter in context.command.params for name in parameter.opts}
    if message.startswith(_EXTRA) and "--case" in options:
        extra = message.removeprefix(_EXTRA).removesuffix(")")
        hint = f"`--case {extra}` names a case or runs of the campaign"
    if context is not None and context.info_name == "compare" and message.startswith("No such option: --case"):
        hint = (
            "`nsw compare CAMPAIGN CASE CASE` compares two cases of one, `nsw compare A:CASE B:CASE` of two campaigns"
        )
    return UsageError(message, hint=hint)


def _show_system_fault(message: str) -> int:
    """Show a fault of the machine: a full disk, a folder without permission."""
    fault = NswError(message)
    show(fault)
    return fault.exit_code


def _flush_stdout(code: int) -> int:
    """Flush standard output before the process ends, to notice here that its reader has gone."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _discard_stdout(code)
    except OSError as fault:
        return _discard_stdout(_show_system_fault(f"standard output: {fault.strerror}"))
    return code


def _discard_stdout(code: int) -> int:
    """Discard what standard output cannot take (`nsw ..."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def show(fault: NswError) -> None:
    """Print an error on stderr: each fault behind `error: `."""
    from nsw.present.terminal import console, wrap_text

    out = console(sys.stderr)
    texts = [d.render() for d in fault.diagnostics] if isinstance(fault, InputError) else [fault.render()]
    for text in texts:
        out.print("error: ", style="bold red", end="", soft_wrap=True)
        out.print(wrap_text(out, text, used_columns=len("error: ")), soft_wrap=True)


if __name__ == "__main__":
    main()
