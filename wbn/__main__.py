"""The `wbn` command, also as `python -m wbn`."""

import sys


def main() -> None:
    """Run the command line, or say what to install when the extras are missing."""
    try:
        from wbn.cli import app

        app()
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package == "wbn":
            raise
        extra = "cluster" if package in ("dask", "distributed") else "experiments"
        sys.exit(
            f"This command needs {package!r}, which is not installed: "
            f"pip install 'weighted-batch-norm[{extra}]'"
        )


if __name__ == "__main__":
    main()
