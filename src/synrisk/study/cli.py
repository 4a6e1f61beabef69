"""The command line: ``synrisk demo``, ``init``, ``run``, ``report``."""

from __future__ import annotations

import functools
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version as version_of
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from synrisk.base.errors import FileError, OptionError, SynriskError, one_of
from synrisk.data.frames import read_table
from synrisk.data.output_files import write_whole
from synrisk.study.file import REPORT_KINDS, kinds_of, no_policy, read_study
from synrisk.study.run import Done, report, run, seeds_of
from synrisk.study.templates import APPLICATIONS, application_text, guessed_text, sample_text
from synrisk.utility import Utility
from synrisk.verdict.criteria import Criteria, policy_names
from synrisk.verdict.reasons import FAILED, UNJUDGED
from synrisk.verdict.verdict import Verdict

WRONG_INPUT, INTERNAL, INTERRUPTED = 2, 70, 130
_CODES = {FAILED: 1, UNJUDGED: 3}
_EXIT_CODES = (
    "Exit codes: 0 passed, or there are no criteria; 1 failed; 3 cannot be judged; 2 wrong input; "
    "130 interrupted; 70 an error of synrisk's own."
)

app = typer.Typer(
    name="synrisk",
    help=(
        "What could an intruder learn about each person from this synthetic data?\n\n"
        "Begin with: synrisk init mystudy --data people.csv\n\n"
        "Then: synrisk run mystudy/study.toml"
    ),
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]


def _guarded(command: Callable[..., int]) -> Callable[..., None]:
    """Turn a command's errors into one message and an exit code."""

    @functools.wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> None:
        message = ""
        try:
            with _interruptions_raise():
                code = command(*args, **kwargs)
        except SynriskError as error:
            code, message = WRONG_INPUT, error.in_study()
        except KeyboardInterrupt:
            code, message = INTERRUPTED, "Interrupted; no file was left half-written."
        except OSError as error:
            code = WRONG_INPUT
            message = f"A file cannot be read or written: {error.strerror or 'unknown reason'}."
        except MemoryError:
            code, message = WRONG_INPUT, "There is not enough memory for this study."
        except typer.Exit:
            raise
        except Exception as error:
            code, message = INTERNAL, _unexpected(error)
        if message:
            _say(message)
        raise typer.Exit(code)

    return guarded


@contextmanager
def _interruptions_raise() -> Iterator[None]:
    """Make Ctrl-C and termination a KeyboardInterrupt, so that what was begun is cleaned up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        numbers.append(signal.SIGINT)
    before = {number: signal.signal(number, _interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


def _unexpected(error: Exception) -> str:
    """Say where synrisk went wrong; the error's own message may hold values, so it is not shown."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"synrisk went wrong: {type(error).__name__} in {Path(last.filename).name}, line "
        f"{last.lineno}. Please report this. What was written before is as it was."
    )


def _say(message: str) -> None:
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"synrisk: {message}", markup=False)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"synrisk {version_of('synrisk')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command(epilog=_EXIT_CODES)
@_guarded
def demo(
    folder: Annotated[Path, typer.Option("--folder", "-f", help="The folder to write.")] = Path(
        "synrisk-demo"
    ),
    quiet: Quiet = False,
) -> int:
    """Run the paper's three applications on the built-in sample.

    Writes a study file for each, runs it as `synrisk run` does, and says where the report is.

    Example: synrisk demo --folder /tmp/demo
    """
    verdicts = []
    _make_folder(folder)
    for application in APPLICATIONS:
        _write(folder / application.file, application_text(application))
        done = run(read_study(folder / application.file), progress=not quiet)
        if not quiet:
            _tell(done)
        verdicts.append(f"{application.title}: {_outcome(done.verdict)}; {done.reports['inside']}")
    if not quiet:
        _print("\n".join(["", *verdicts]))
        _print("Try your own data: synrisk init --data people.csv")
    return 0


@app.command()
@_guarded
def init(
    folder: Annotated[
        Path, typer.Argument(help="Where to write study.toml.", metavar="FOLDER")
    ] = Path(),
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", "-d", help="Confidential data: CSV, Parquet or RDS. Its columns are read."
        ),
    ] = None,
) -> int:
    """Write a commented study.toml that runs as it is.

    Without data it is a study of the built-in sample. With --data a plan is guessed from the
    columns; read it and change it. No value of the data is written.

    Examples: synrisk init mystudy; synrisk init mystudy --data people.csv
    """
    target = folder / "study.toml"
    if target.exists():
        raise FileError(f"{target} exists already; choose another folder, or move it away.")
    if data is None:
        text = sample_text(target.name)
    else:
        frame = read_table(data, "The confidential data")
        text = guessed_text(target.name, _relative(data, folder), frame)
    _make_folder(folder)
    _write(target, text)
    _print(f"Written: {target}\nRead it, change it, then: synrisk run {target}")
    return 0


@app.command("run", epilog=_EXIT_CODES)
@_guarded
def run_study(
    study: Annotated[Path, typer.Argument(help="The study file.", metavar="STUDY")],
    seed_from: Annotated[
        Path | None,
        typer.Option(
            "--seed-from",
            help="The manifest.json of an earlier run: the same data again, by its secret seed.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Run a study: fit, synthesize, evaluate the risk, judge it, and write a folder.

    The folder holds the report, the synthetic data, the posterior draws, the risk (risk.nc), a row
    a record (records.csv), the utility if the study asks for it (utility.json), what was found
    (summary.json), and what it was made of (manifest.json: digests, versions, seeds, settings). All
    but report.html is for inside use, and readable by its owner alone. A second run replaces what
    the first one wrote.

    Examples: synrisk run mystudy/study.toml; synrisk run mystudy/study.toml --seed-from
    mystudy/results/manifest.json
    """
    read = read_study(study)
    seeds = None if seed_from is None else seeds_of(seed_from, read)
    done = run(read, seeds=seeds, progress=not quiet)
    if not quiet:
        _tell(done)
    return _code(done.verdict)


@app.command("report", epilog=_EXIT_CODES)
@_guarded
def make_report(
    folder: Annotated[
        Path, typer.Argument(help="A folder that `synrisk run` wrote.", metavar="FOLDER")
    ],
    kind: Annotated[
        str | None,
        typer.Option("--kind", "-k", help="sharing, inside or both, beside those that are there."),
    ] = None,
    criteria: Annotated[
        Path | None,
        typer.Option("--criteria", "-c", help="A TOML file of policies, for other limits."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option("--policy", "-p", help="A policy of that file, or a built-in one: p-percent."),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", "-t", help="Another title.")] = None,
    quiet: Quiet = False,
) -> int:
    """Make the report anew from the saved risk; nothing is evaluated again.

    Examples: synrisk report results --kind inside; synrisk report results --policy cell-of-11
    """
    if kind is not None:
        one_of("--kind", kind, REPORT_KINDS)
    limits = None
    if criteria is not None:
        limits = Criteria.from_toml(criteria, policy)
    elif policy is not None:
        if policy not in policy_names():
            raise OptionError(f"--policy: {no_policy(policy)} Yours: --criteria policies.toml.")
        limits = Criteria.named(policy)
    kinds = () if kind is None else kinds_of(kind)
    done = report(folder, kinds=kinds, criteria=limits, title=title, progress=not quiet)
    if not quiet:
        _tell(done)
    return _code(done.verdict)


def _code(verdict: Verdict | None) -> int:
    return 0 if verdict is None else _CODES.get(verdict.outcome, 0)


def _outcome(verdict: Verdict | None) -> str:
    return "no criteria" if verdict is None else verdict.outcome


def _tell(done: Done) -> None:
    """Print what was found: for inside use."""
    _print(f"\n{done.title}", style="bold")
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("probability of the truth")
    shown = {
        "prior": "before, mean",
        "mean": "after, mean",
        "max": "after, largest",
        "gain_q95": "gain, 95 %",
        "gain_max": "gain, largest",
    }
    for name in shown.values():
        table.add_column(name, justify="right")
    for of, row in done.risk.summary().iterrows():
        table.add_row(str(of), *(f"{row[key]:.3g}" for key in shown))
    _console().print(table, markup=False)
    for note in (*done.risk.notes, *done.warnings):
        _print(f"Note: {note}")
    for finding in done.risk.diagnostics().to_dict("records"):
        _print(f"Shaky: {finding['what']} {finding['why']} {finding['what_to_do']}")
    if done.utility is not None:
        _tell_utility(done.utility)
    if done.verdict is not None:
        _print(f"\n{done.verdict}")
    _print(f"\nWritten: {done.folder}")
    for kind, path in done.reports.items():
        _print(f"Report for {'sharing' if kind == 'sharing' else 'inside use'}: {path}")


def _tell_utility(utility: Utility) -> None:
    """Print how useful the release is."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("utility")
    shown = {"value": "release", "right_models": "right models", "copy": "a copy"}
    for name in shown.values():
        table.add_column(name, justify="right")
    for measure, row in utility.summary().iterrows():
        numbers = [f"{row[key]:.3g}" if row[key] == row[key] else "–" for key in shown]
        table.add_row(str(measure).replace("_", " "), *numbers)
    _print("")
    _console().print(table, markup=False)
    for note in utility.notes:
        _print(f"Note: {note}")


def _console() -> Console:
    return Console(soft_wrap=True, highlight=False)


def _print(text: str, style: str | None = None) -> None:
    _console().print(text, markup=False, style=style)


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _make_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file; a folder is needed.")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def _write(target: Path, text: str) -> None:
    write_whole(target, text.encode(), owner_only=True)
