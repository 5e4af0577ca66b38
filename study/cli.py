"""The `wbn` command.

Each command imports what it needs, so that help comes at once and weights need torch only.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from study.engine import Protocol
    from study.stores.provenance import Unit

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Weighted batch normalization: the paper's experiments, sweeps and weights.\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.",
)
# Plain text: a path may have square brackets or colons, which are markup and emoji to rich.
plain = partial(Console, soft_wrap=True, markup=False, emoji=False, highlight=False)
out, err = plain(), plain(stderr=True)

Scheduler = Annotated[
    str | None, typer.Option(help="Address of a Dask scheduler that runs the units.")
]
KEPT = "What was finished is kept in {}; the same command resumes."
EVALUATED = (1, 2, 3, 4, 5)  # and each fifth epoch after these


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"wbn {version('weighted-batch-norm')}")
        raise typer.Exit


@contextmanager
def _explained() -> Iterator[None]:
    """Errors and warnings in one line each."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: err.print(f"Warning: {message}")
        try:
            yield
        except (typer.Exit, ModuleNotFoundError, BrokenPipeError):
            raise  # `study.__main__` says what to install, typer is silent about the others
        except (OSError, ValueError, RuntimeError, ImportError) as error:
            err.print(f"Failed: {error}", style="red")
            raise typer.Exit(1) from None


@contextmanager
def _interruptible(message: str) -> Iterator[None]:
    """Ctrl-C raises inside, where imports are done, so that what runs can clean up."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        err.print(f"Interrupted. {message}")
        raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _usage() -> Iterator[None]:
    """Refused values are wrong usage."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise typer.BadParameter(str(error)) from error


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Options of the command itself."""


@app.command(epilog="Examples: `wbn data`; `wbn data --folder mnist`")
@_explained()
def data(
    folder: Annotated[
        Path | None,
        typer.Option(help="Where MNIST/raw goes: by default WBN_DATA, or data/ in the clone."),
    ] = None,
) -> None:
    """Fetch MNIST, where it is not there yet, and verify it."""
    from study.engine.fetch import main

    with _interruptible("Run it again to fetch what is missing."):
        raise typer.Exit(main(["--folder", str(folder)] if folder else []))


@app.command(
    epilog="Examples: `wbn reproduce`; `wbn reproduce --experiment iii --seeds 40 --out iii`"
)
@_explained()
def reproduce(
    experiment: Annotated[str, typer.Option(help="Some of i,ii,iii.")] = "i,ii,iii",
    seeds: Annotated[int, typer.Option(min=2, help="Number of seeds, from 0.")] = 20,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of training.")] = 20,
    store: Annotated[Path, typer.Option("--out", help="Folder for results.")] = Path("wbn-results"),
    scheduler: Scheduler = None,
) -> None:
    """Run the paper's three experiments and print its Table 2 beside ours."""
    from study.engine import EXPERIMENTS, METHODS, Protocol
    from study.engine.protocol import ALLOWED
    from study.figures.runs import trajectories
    from study.figures.style import use_house_style
    from study.stats.table_2 import beside_paper
    from study.stores.plan import SEEDS, check_size
    from study.stores.sweep import sweep

    wanted = experiment.split(",")
    if not set(wanted) <= set(EXPERIMENTS):
        raise typer.BadParameter(f"{experiment!r}: choose some of {','.join(EXPERIMENTS)}")
    with _usage():
        SEEDS.take("--seeds", seeds), ALLOWED["epochs"].take("--epochs", epochs)
        evaluated = [e for e in range(1, epochs + 1) if e in EVALUATED or e % 5 == 0 or e == epochs]
        protocols = [
            Protocol.paper(name, method, epochs=epochs, eval_epochs=evaluated)
            for name in wanted
            for method in METHODS
        ]
        check_size(protocols, seeds)
    with _executor(scheduler) as executor, _interruptible(KEPT.format(store)):
        table = sweep(protocols, range(seeds), store, executor=executor)
        beside = beside_paper(table)
        _print_table_2(beside, epochs)
        beside.to_csv(store / "table_2.csv", index=False)
        use_house_style()
        trajectories(table).savefig(store / "curves.png")
    out.print(f"Written: {store / 'table_2.csv'} and {store / 'curves.png'}")


@app.command("sweep", epilog="Example: `wbn sweep study.toml --out results`")
@_explained()
def sweep_plan(
    file: Annotated[Path, typer.Argument(help="A TOML file: `seeds = N` and [[grid]] tables.")],
    store: Annotated[Path, typer.Option("--out", help="Folder for results.")] = Path("wbn-results"),
    scheduler: Scheduler = None,
    refresh: Annotated[bool, typer.Option(help="Run again what the store holds.")] = False,
) -> None:
    """Run every protocol of a declared grid that the store does not hold yet."""
    from study.stores.sweep import sweep

    protocols, seeds = _plan(file)
    with _executor(scheduler) as executor, _interruptible(KEPT.format(store)):
        table = sweep(protocols, seeds, store, executor=executor, refresh=refresh)
    runs = len(table[["protocol", "seed"]].drop_duplicates())
    out.print(f"{len(protocols)} protocols, {runs} runs, {len(table)} rows in {store}")


@app.command(
    epilog="Examples: `wbn show results`; `wbn show results study.toml`; "
    "`wbn show results --csv > results.csv`"
)
@_explained()
def show(
    store: Annotated[Path, typer.Argument(help="Folder with results.")],
    file: Annotated[Path | None, typer.Argument(help="A plan, to tell what is missing.")] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print all rows as CSV instead.")] = False,
) -> None:
    """Tell what a store holds, what a plan still misses, and what that would cost."""
    _require(store)
    if csv and file is not None:
        raise typer.BadParameter("--csv prints what is there: leave out the plan")
    from study.stores.store import Store

    if csv:
        Store(store).table().to_csv(sys.stdout, index=False)
        return
    stored = Store(store).units()
    table = Table(
        "experiment", "method", "differs from the reference reading by", "seeds", "seconds"
    )
    for protocol, units in _by_protocol(stored).items():
        seeds = sum(len(unit.seeds) for unit, _ in units)
        seconds = sum(seconds for _, seconds in units)
        differs = ", ".join(f"{k}={v}" for k, v in protocol.differences.items()) or "nothing"
        table.add_row(protocol.experiment, protocol.method, differs, str(seeds), f"{seconds:.0f}")
    out.print(table if stored else f"{store} holds no results")
    if file is not None:
        out.print(_missing(file, stored))


@app.command(epilog="Examples: `wbn verify results --sample 3`; `wbn verify results --fresh again`")
@_explained()
def verify(
    store: Annotated[Path, typer.Argument(help="Folder with results.")],
    sample: Annotated[int, typer.Option(min=1, help="Number of units to run again.")] = 3,
    seed: Annotated[int, typer.Option(help="Decides which units.")] = 0,
    fresh: Annotated[
        Path | None, typer.Option(help="Run everything again, into this folder.")
    ] = None,
    scheduler: Scheduler = None,
) -> None:
    """Run stored units again and tell whether the numbers agree."""
    _require(store)
    from study.stores import verify as module

    with _executor(scheduler) as executor, _interruptible(KEPT.format(fresh or store)):
        if fresh is None:
            result = module.verify(store, sample, seed)
        else:
            result = module.reproduce(store, fresh, executor)
    if result.empty:
        out.print(f"{store} holds no results to run again")
        return
    out.print(result.to_string(index=False))
    out.print(", ".join(f"{n} {verdict}" for verdict, n in result.verdict.value_counts().items()))
    if not result.verdict.isin(module.REPRODUCED).all():
        raise typer.Exit(1)


@app.command(epilog="Examples: `wbn claims`; `wbn claims again --grid`")
@_explained()
def claims(
    folder: Annotated[
        Path, typer.Argument(help="Folder with the stores family and corrections.")
    ] = Path("results"),
    grid: Annotated[
        bool, typer.Option("--grid", help="Print a symbol for each claim and reading.")
    ] = False,
) -> None:
    """Judge the paper's claims from stored results, and print the verdicts in Markdown."""
    import pandas as pd

    from study.stores.store import Store

    if grid:
        from study.chapters.report.grid import grid_markdown as markdown
    else:
        from study.chapters.claims import claims_markdown as markdown

    for name in ("family", "corrections"):
        _require(folder / name, "stored results are in the clone: run it there, or name theirs")
    table = pd.concat(Store(folder / name).table() for name in ("family", "corrections"))
    if table.empty:
        raise ValueError(f"{folder} holds no results: run the plans of the two stores first")
    out.print(markdown(table))


@app.command(epilog="Example: `wbn weights 5923,45 --beta 0.999`")
@_explained()
def weights(
    counts: Annotated[str, typer.Argument(help="Class sizes, as in 5923,45.")],
    beta: Annotated[float, typer.Option(help="Of the class-balanced weights.")] = 0.999,
) -> None:
    """Print the class weights and effective class sizes of every scheme and scale."""
    from wbn.weights import SCHEMES, Scale, effective_class_sizes, rescale

    if not re.fullmatch(r"[0-9]{1,15}(,[0-9]{1,15})*", counts):  # what float64 holds exactly
        raise typer.BadParameter(
            f"{counts[:80]!r}: give whole numbers of at most 15 digits with commas, as in 5923,45"
        )
    sizes = [int(count) for count in counts.split(",")]
    with _usage():
        class_weights = {name: scheme(sizes, beta) for name, scheme in SCHEMES.items()}
    table = Table("scheme", "scale", "class weights", "effective class sizes")
    for name, class_weight in class_weights.items():
        label = name.replace("_", " ") + (f", beta {beta:g}" if SCHEMES[name].takes_beta else "")
        for scale in get_args(Scale):
            scaled = rescale(class_weight, sizes, scale)
            effective = effective_class_sizes(scaled, sizes)
            cells = (", ".join(f"{v:.6g}" for v in row.tolist()) for row in (scaled, effective))
            table.add_row(label, scale, *cells)
            label = ""
    out.print(table)


def _require(store: Path, remedy: str = "name one that holds results") -> None:
    if not os.path.isdir(store):  # Path.is_dir raises where a name is too long
        raise typer.BadParameter(f"there is no folder {store}; {remedy}")


def _by_protocol(stored: list[tuple[Unit, float]]) -> dict[Protocol, list[tuple[Unit, float]]]:
    groups: dict[Protocol, list[tuple[Unit, float]]] = {}
    for unit, seconds in stored:
        groups.setdefault(unit.protocol, []).append((unit, seconds))
    return groups


def _missing(file: Path, stored: list[tuple[Unit, float]]) -> str:
    """What a plan still needs, and its cost at the speed of what is there."""
    from study.stores.sweep import plan_units

    protocols, seeds = _plan(file)
    done = {unit for unit, _ in stored}
    missing = [unit for unit in plan_units(protocols, seeds) if unit not in done]
    if not missing:
        return f"{file}: nothing missing"
    runs = sum(len(unit.seeds) for unit in missing)
    epochs = sum(len(unit.seeds) * unit.protocol.epochs for unit in missing)
    message = f"{file}: {runs} runs missing, {epochs} epochs in all"
    known = sum(len(unit.seeds) * unit.protocol.epochs for unit in done)
    if known:
        hours = epochs * sum(seconds for _, seconds in stored) / known / 3600
        message += f"; about {hours:.2f} hours of one core, at the speed of what is there"
    return message


def _plan(file: Path) -> tuple[list[Protocol], range]:
    from study.stores.plan import read_plan

    with _usage():
        return read_plan(file)


@contextmanager
def _executor(scheduler: str | None) -> Iterator[object]:
    if scheduler is None:
        yield None
        return
    from dask.distributed import Client

    with Client(scheduler, timeout="10s") as client:
        yield client


def _print_table_2(beside: pd.DataFrame, epochs: int) -> None:
    from study.engine import METHODS
    from study.figures.text import percent

    n = beside.n.iloc[0]
    title = f"Test accuracy in percent after {epochs} epochs: the paper's Table 2, and ours"
    caption = f"ours: mean and 95 % interval over {n} seeds, conditional on the one test set"
    table = Table(
        "", "method", "class", "paper", "ours", "95 % interval", title=title, caption=caption
    )
    for row in beside.itertuples():
        name = row.metric.removeprefix("accuracy_")
        first = name == "minority"
        table.add_row(
            f"({row.experiment})" if first and row.method == "lf_sbn" else "",
            METHODS[row.method] if first else "",
            name,
            row.paper,
            percent(row.mean),
            f"{percent(row.low)} to {percent(row.high)}",
            end_section=name == "overall",
        )
    out.print(table)
