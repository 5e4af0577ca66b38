"""The `wbn` command, also as `python -m study`.

Up here it imports what Python has loaded already: Ctrl-C is ours from the first line of `main` on.
"""

import io
import os
import sys


def main() -> None:
    """Run the command line; what goes wrong is told in a line, never by a traceback."""
    try:
        import signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else `wbn &` ignores it
            signal.signal(signal.SIGINT, _leave)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # of letters that the terminal does not have
        from study.cli import app

        app()
    except KeyboardInterrupt:
        _leave()
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package in ("wbn", "study"):
            raise
        extra = "[cluster]" if package in ("dask", "distributed") else ""
        sys.exit(
            f"This command needs {package!r}, which is not installed: run "
            f"`pip install -e . -e './study{extra}'` in the clone"
        )
    except Exception as error:
        sys.exit(f"Failed unexpectedly: {error!r}")


def _leave(*_: object) -> None:
    """End at once: an exception in the middle of an import may be swallowed, or chained."""
    try:
        os.write(2, b"Interrupted.\n")
    finally:
        os._exit(130)


if __name__ == "__main__":
    main()
