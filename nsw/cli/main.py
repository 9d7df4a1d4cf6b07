"""The entry point: errors become messages and exit codes here, and nowhere else."""

from __future__ import annotations

import sys

from nsw.errors import Exit, NswError


def main() -> None:
    """`nsw ...`: ends the process with the exit code of docs/architecture.md."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Carry out a command line; the exit code."""
    if arguments == ["--version"]:  # the one question that needs no command-line parser
        from nsw import __version__

        print(f"nsw {__version__}")
        return Exit.GOOD
    from nsw.cli.app import app

    try:
        app(args=arguments, prog_name="nsw")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else Exit.GOOD
    except NswError as fault:
        show(fault)
        return fault.exit_code
    return Exit.GOOD


def show(fault: NswError) -> None:
    """Print an error on stderr: `error: ` and what it says."""
    from nsw.present.terminal import console

    out = console(sys.stderr)
    out.print("error: ", style="bold red", end="", soft_wrap=True)
    out.print(fault.render(), soft_wrap=True)


if __name__ == "__main__":
    main()
