"""The `wbn` command, also as `python -m wbn`."""

import sys


def main() -> None:
    """Run the command line, or say what to install when the extras are missing."""
    try:
        from wbn.cli import app
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == "wbn":
            raise
        sys.exit(
            f"The wbn command needs {error.name!r}, which is not installed: "
            "pip install 'wbn[experiments]'"
        )
    app()


if __name__ == "__main__":
    main()
