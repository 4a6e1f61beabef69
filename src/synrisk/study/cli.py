"""The command line: ``synrisk demo``, ``init``, ``run``, ``report``, ``audit``, ``compare``."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version as version_of
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import pandas as pd
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from synrisk.base.errors import FileError, OptionError, SynriskError, listed, one_of
from synrisk.base.messages import visible
from synrisk.data.csv_dialects import FileWarning
from synrisk.data.frames import read_table
from synrisk.data.output_files import why_not_a_file, write_whole
from synrisk.plots.of_comparison import NO
from synrisk.study.audit_run import Audited, compare_folders, run_audit
from synrisk.study.file import REPORT_KINDS, kinds_of, read_study
from synrisk.study.folder import PLACED, SIGNALS, abandon
from synrisk.study.further_risks import FurtherRisk
from synrisk.study.reports_again import report
from synrisk.study.results import Done
from synrisk.study.risk_sections import no_policy
from synrisk.study.run import run, seeds_of
from synrisk.study.study import AUDIT
from synrisk.study.templates import (
    APPLICATIONS,
    application_text,
    sample_text,
    suggested_text,
)
from synrisk.synthesis.suggested_plan import suggest_plan
from synrisk.utility import Utility
from synrisk.verdict.criteria import Criteria, policy_names
from synrisk.verdict.reasons import FAILED, UNJUDGED
from synrisk.verdict.verdict import Verdict

WRONG_INPUT, INTERNAL, INTERRUPTED = 2, 70, 130
_INTERRUPTION = "Interrupted; no file was left half-written."
_TOO_LATE = "Interrupted; new results had been written by then, and every file is whole."
_CODES = {FAILED: 1, UNJUDGED: 3}
_EXIT_CODES = (
    "Exit codes: 0 passed, or there are no criteria; 1 failed; 3 cannot be judged; 2 wrong input; "
    "130 interrupted; 70 an error of synrisk's own."
)


_COMPARED = {
    "n_datasets": "m",
    "gain_q95": "gain, 95 %",
    "gain_max": "largest",
    "gain_max_of_one": "of one",
    "too_close": "too close",
    "pmse_ratio": "pMSE ratio",
    "verdict": "verdict",
}


_OF_AUDIT = {"before": "before, mean", "after": "after, mean"}
_IDENTIFIED = {
    "expected_match_risk": "people found",
    "by_known": "by known alone",
    "expected_by_models": "by models",
    "true_match_rate": "true match rate",
    "false_match_rate": "false match rate",
}


class _Commands(TyperGroup):
    """The commands, on streams that printing to does not fail."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command that the arguments name."""
        _prepare_streams()
        try:
            with _files_told():
                return super().main(*args, **kwargs)
        except OSError as error:  # of the help or the version; commands have their own handler
            problem = error.strerror or type(error).__name__
        _Printer().lead_nowhere()
        _say(f"This cannot be printed: {problem}.")
        sys.exit(WRONG_INPUT)


@contextmanager
def _files_told() -> Iterator[None]:
    """Tell how files were read in a line each, not as Python tells warnings."""
    with warnings.catch_warnings():
        as_before = warnings.showwarning

        def show(message: Any, category: Any, *rest: Any, **more: Any) -> None:
            if issubclass(category, FileWarning):
                _put(Text(visible(f"Note: {message}")), stderr=True)
            else:
                as_before(message, category, *rest, **more)

        warnings.showwarning = show
        yield


def _prepare_streams() -> None:
    """Lead closed streams nowhere, and let the others escape what their encoding lacks."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # else the next file that is opened has this number, and is printed to
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.StringIO())
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


app = typer.Typer(
    name="synrisk",
    cls=_Commands,
    help=(
        "What could an intruder learn about each person from this synthetic data?\n\n"
        "Begin with: synrisk init mystudy --data people.csv\n\n"
        "Then: synrisk run mystudy/study.toml\n\n"
        "With two files and no models: synrisk audit real.csv fake.csv"
    ),
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
PolicyFile = Annotated[
    Path | None, typer.Option("--criteria", "-c", help="A TOML file of policies, for other limits.")
]
Policy = Annotated[
    str | None,
    typer.Option("--policy", "-p", help="A policy of that file, or a built-in one: p-percent."),
]


def _guarded(
    command: Callable[..., int], spell: Callable[[SynriskError], str] = SynriskError.in_study
) -> Callable[..., None]:
    """Turn a command's errors into one message and an exit code."""

    @functools.wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> None:
        message = ""
        try:
            with _interruptions_leave():
                code = command(*args, **kwargs)
        except SynriskError as error:
            code, message = WRONG_INPUT, spell(error)
        except KeyboardInterrupt:
            code, message = INTERRUPTED, _interruption()
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
def _interruptions_leave() -> Iterator[None]:
    """Let Ctrl-C and the like end the process at once, after what was begun is removed.

    An exception would be raised wherever the program is: some libraries drop it, and others keep
    a lock for good that a thread waits for.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # A shell that runs jobs in the background has them ignore Ctrl-C; that stays so.
    heeded = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    PLACED.clear()
    before = {number: signal.signal(number, _leave) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(_: int, __: FrameType | None) -> None:
    """Remove what was begun, say so and end the process."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    abandon()
    message = f"synrisk: {_interruption()}\n"
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr.isatty():  # a display of progress hides the cursor
            message = f"\x1b[?25h\n{message}"
        os.write(2, message.encode())  # not by a stream that may be writing
    os._exit(INTERRUPTED)


def _interruption() -> str:
    return _TOO_LATE if PLACED.is_set() else _INTERRUPTION


def _unexpected(error: Exception) -> str:
    """Say where synrisk went wrong; the error's own message may hold values, so it is not shown."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"synrisk went wrong: {type(error).__name__} in {Path(last.filename).name}, line "
        f"{last.lineno}. Please report this. What was written before is as it was."
    )


class _Printer(Console):
    """A terminal, a file or a pipe; nobody has to read it to the end (``synrisk run … | head``)."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)

    def on_broken_pipe(self) -> None:
        """Print no more; what rich does instead ends the process with the code of a verdict."""
        self.lead_nowhere()

    def lead_nowhere(self) -> None:
        """Let the stream take all that is still printed, and drop it."""
        with contextlib.suppress(OSError, ValueError):  # a stream that has no number
            number, nowhere = self.file.fileno(), os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)


def _put(what: Text | Table, *, stderr: bool = False) -> None:
    """Print, and say so where that fails for another reason than that nobody reads."""
    printer, problem = _Printer(stderr=stderr), ""
    try:
        printer.print(what)
    except BrokenPipeError:  # of a rich before 13.8
        printer.lead_nowhere()
    except OSError as error:
        printer.lead_nowhere()
        problem = error.strerror or type(error).__name__
    if problem and not stderr:
        raise FileError(f"What is written is whole, but cannot be printed: {problem}.")


def _say(message: str) -> None:
    _put(Text(visible(f"synrisk: {message}")), stderr=True)


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
    texts = {folder / one.file: application_text(one) for one in APPLICATIONS}
    _make_folder(folder)
    _write_studies(texts)
    for application in APPLICATIONS:
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
            "--data",
            "-d",
            help="Confidential data: CSV, Parquet, RDS, SPSS, SAS, Stata. Its columns are read.",
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            "--sensitive",
            "-s",
            help="A column to protect by synthesis; once for each. Asked for if it is not given.",
            metavar="COLUMN",
        ),
    ] = None,
) -> int:
    """Write a commented study.toml that runs as it is.

    Without data it is a study of the built-in sample. With --data a plan is suggested for the
    columns that are sensitive, with the reason for every choice; read it and change it. No value of
    the data is written.

    Examples: synrisk init mystudy; synrisk init mystudy --data people.csv -s Income -s Debt
    """
    target = folder / "study.toml"
    if os.path.lexists(target):
        raise FileError(f"{target} exists already; choose another folder, or move it away.")
    if data is None:
        text = sample_text(target.name)
    else:
        frame = read_table(data, "The confidential data")
        chosen = sensitive or _asked_for(list(frame.columns))
        plan = suggest_plan(frame, sensitive=chosen)
        text = suggested_text(target.name, _relative(data, folder), plan)
    _make_folder(folder)
    _write(target, text)
    _print(f"Written: {target}\nRead it, change it, then: synrisk run {target}")
    return 0


def _asked_for(names: Sequence[str]) -> list[str]:
    """Ask which columns are sensitive, where somebody can answer."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise OptionError(
            "Say which columns must be protected, once for each: --sensitive COLUMN. Nobody but "
            f"you knows them. There are: {listed(names)}."
        )
    _print(f"Columns: {visible(', '.join(names))}")
    answer: str = typer.prompt("Which of them must be protected? (with commas between)")
    return [name.strip() for name in answer.split(",") if name.strip()]


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
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on where an earlier run of data in parts ended, with its seed.",
        ),
    ] = False,
    quiet: Quiet = False,
) -> int:
    """Run a study: fit, synthesize, evaluate the risk, judge it, and write a folder.

    The folder holds the report, the synthetic data, the posterior draws, the risk (risk.nc), a row
    a record (records.csv), the utility if the study asks for it (utility.json), what was found
    (summary.json), and what it was made of (manifest.json: digests, versions, seeds, settings). All
    but report.html is for inside use, and readable by its owner alone. A second run replaces what
    the first one wrote.

    Data in a folder of Parquet files are read in parts; datasets and risk are folders of parts too.
    Where such a run ended early, --resume goes on: parts that are whole and fit are kept.

    Examples: synrisk run mystudy/study.toml; synrisk run mystudy/study.toml --seed-from
    mystudy/results/manifest.json
    """
    read = read_study(study)
    seeds = None if seed_from is None else seeds_of(seed_from, read)
    done = run(read, seeds=seeds, progress=not quiet, resume=resume)
    if not quiet:
        _tell(done)
    return _code(*done.verdicts)


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
    criteria: PolicyFile = None,
    policy: Policy = None,
    title: Annotated[str | None, typer.Option("--title", "-t", help="Another title.")] = None,
    quiet: Quiet = False,
) -> int:
    """Make the report anew from the saved risk; nothing is evaluated again.

    Examples: synrisk report results --kind inside; synrisk report results --policy cell-of-11
    """
    if kind is not None:
        one_of("--kind", kind, REPORT_KINDS)
    limits = _limits(criteria, policy)
    kinds = () if kind is None else kinds_of(kind)
    done = report(folder, kinds=kinds, criteria=limits, title=title, progress=not quiet)
    if not quiet:
        _tell(done)
    return _code(*done.verdicts)


@app.command("audit", epilog=_EXIT_CODES)
@functools.partial(_guarded, spell=SynriskError.in_command)
def audit_files(
    confidential: Annotated[Path, typer.Argument(help="The confidential file.", metavar="REAL")],
    synthetic: Annotated[
        list[Path], typer.Argument(help="The release, a file a dataset.", metavar="FAKE…")
    ],
    holdout: Annotated[
        Path | None,
        typer.Option("--holdout", help="People of the same kind who are in neither file."),
    ] = None,
    keys: Annotated[
        str | None,
        typer.Option("--keys", help="What an intruder knows of a person: a,b. By default all."),
    ] = None,
    sensitive: Annotated[
        str | None, typer.Option("--sensitive", help="What is sought: c,d. By default all.")
    ] = None,
    categories: Annotated[
        str | None,
        typer.Option("--categories", help="Columns of numbers that are levels: zip,code."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", "-f", help="Where to write reports and numbers."),
    ] = None,
    criteria: PolicyFile = None,
    policy: Policy = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="For the same numbers again; by default secret.")
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Say what a release teaches about each person, by two files alone.

    No models are needed, and nothing is assumed of how the release was made. With --folder it
    writes a report for sharing and one for inside use, a row a record (records.csv), the audit
    (audit.nc), and what it was made of (manifest.json); all but report.html is for inside use.

    Examples: synrisk audit real.csv fake.csv; synrisk audit real.csv fake1.csv fake2.csv
    --keys age,sex,region --sensitive income --folder out
    """
    options = {
        "holdout": holdout,
        "keys": _split(keys),
        "sensitive": _split(sensitive),
        "types": dict.fromkeys(_split(categories) or (), "category") or None,
        "seed": seed,
    }
    limits = _limits(criteria, policy)
    done = run_audit(confidential, synthetic, options, folder, limits, progress=not quiet)
    if not quiet:
        _tell_audit(done)
    return _code(done.verdict)


@app.command("compare")
@_guarded
def compare_audits(
    audits: Annotated[
        list[Path],
        typer.Argument(help="Folders of `synrisk audit`, or their audit.nc.", metavar="AUDIT…"),
    ],
    criteria: PolicyFile = None,
    policy: Policy = None,
    quiet: Quiet = False,
) -> int:
    """Print audits of several releases of the same people side by side, a row a release.

    What each teaches, how many people it is too close to, how useful it is, and the verdict.

    Example: synrisk compare cart ctgan
    """
    limits = _limits(criteria, policy)
    found = compare_folders(audits, limits, progress=not quiet)
    _put_table("release", _COMPARED, found.table)
    _print_lines("Too close", found.table["why"][found.table["judged"] == NO])
    _print_lines("Note", found.notes)
    return 0


def _split(names: str | None) -> list[str] | None:
    """Return the names of columns that commas part."""
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]


def _limits(criteria: Path | None, policy: str | None) -> Criteria | None:
    """Return the limits that options name, or None."""
    if criteria is not None:
        return Criteria.from_toml(criteria, policy)
    if policy is None:
        return None
    if policy not in policy_names():
        raise OptionError(f"--policy: {no_policy(policy)} Yours: --criteria policies.toml.")
    return Criteria.named(policy)


def _tell_audit(done: Audited) -> None:
    """Print what an audit found: for inside use."""
    _print("")
    _put_summary(done.audit.summary(), _OF_AUDIT)
    _print_lines("Note", done.audit.notes[:-1])  # the last is beside the verdict
    _print(f"\n{_in_lines(done.verdict)}")
    _print_written(done.folder, done.reports)


def _put_summary(summary: pd.DataFrame, shown: Mapping[str, str]) -> None:
    """Print the probability of the truth, a row for all variables together and for each."""
    shown = {**shown, "gain_q95": "gain, 95 %", "gain_max": "gain, largest"}
    _put_table("probability of the truth", shown, summary)


def _put_table(first: str, shown: Mapping[str, str], frame: pd.DataFrame) -> None:
    """Print columns of a frame under other names, after one with the names of its rows."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(first)
    for name in shown.values():
        table.add_column(name, justify="right")
    for of, row in frame.iterrows():
        table.add_row(visible(str(of)), *(_cell(row[key]) for key in shown))
    _put(table)


def _cell(value: Any) -> str:
    """Return a number in few digits; a dash where there is none."""
    if isinstance(value, str):
        return visible(value)
    return f"{value:.3g}" if value == value else "–"


def _print_written(folder: Path | None, reports: Mapping[str, Path]) -> None:
    """Print where results and reports are."""
    if folder is not None:
        _print(f"\nWritten: {folder}")
    for kind, path in reports.items():
        _print(f"Report for {'sharing' if kind == 'sharing' else 'inside use'}: {path}")


def _code(*verdicts: Verdict) -> int:
    """Return the exit code of the worst: failed before cannot be judged."""
    outcomes = {verdict.outcome for verdict in verdicts}
    return next((code for outcome, code in _CODES.items() if outcome in outcomes), 0)


def _outcome(verdict: Verdict | None) -> str:
    return "no criteria" if verdict is None else verdict.outcome


def _tell(done: Done) -> None:
    """Print what was found: for inside use."""
    _print("")
    _print(visible(done.title), style="bold")
    shown = {"prior": "before, mean", "mean": "after, mean", "max": "after, largest"}
    _put_summary(done.risk.summary(), shown)
    _print_lines("Note", (*done.risk.notes, *done.warnings))
    for finding in done.risk.diagnostics().to_dict("records"):
        _print_lines("Shaky", [f"{finding['what']} {finding['why']} {finding['what_to_do']}"])
    if done.utility is not None:
        _tell_utility(done.utility)
    if done.verdict is not None:
        _print(f"\n{_in_lines(done.verdict)}")
    for one in done.further:
        _tell_further(one)
    _print_written(done.folder, done.reports)


def _tell_further(one: FurtherRisk) -> None:
    """Print what a further risk found: for inside use."""
    _print("")
    _print(one.title.capitalize(), style="bold")
    if one.name == AUDIT:
        _put_summary(one.found.summary(), _OF_AUDIT)
    else:
        summary = one.found.summary()
        shown = {name: called for name, called in _IDENTIFIED.items() if name in summary}
        _put_table("dataset", shown, summary)
    _print_lines("Note", one.found.notes)
    _print(f"\n{_in_lines(one.verdict)}")


def _in_lines(verdict: Verdict) -> str:
    """Return a verdict, a line for each of its sentences whatever names stand in them."""
    text = str(verdict)
    for sentence in verdict.sentences():
        text = text.replace(sentence, visible(sentence))
    return text


def _tell_utility(utility: Utility) -> None:
    """Print how useful the release is."""
    shown = {"value": "release", "right_models": "right models", "copy": "a copy"}
    measures = utility.summary()
    _print("")
    _put_table("utility", shown, measures.set_axis(measures.index.str.replace("_", " ")))
    _print_lines("Note", utility.notes)


def _print_lines(begin: str, sentences: Iterable[str]) -> None:
    """Print a line for each sentence, whatever names stand in it."""
    for sentence in sentences:
        _print(f"{begin}: {visible(str(sentence))}")


def _print(text: str, style: str = "") -> None:
    _put(Text(visible(text, keep="\n"), style))


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _make_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file; a folder is needed.")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def _write(target: Path, text: str) -> None:
    content = None
    with contextlib.suppress(UnicodeEncodeError):
        content = text.encode()
    if content is None:
        raise FileError(
            f"{target} cannot be written: a name of a file or a column that it would hold is not "
            "Unicode text. Rename it."
        )
    write_whole(target, content, owner_only=True)


def _write_studies(texts: Mapping[Path, str]) -> None:
    """Write the study files that are not there as they should be; overwrite none."""
    others = [
        path for path, text in texts.items() if os.path.lexists(path) and not _holds(path, text)
    ]
    if others:
        raise FileError(
            f"{listed(others)} {'is' if len(others) == 1 else 'are'} there already with another "
            "text, and nothing is overwritten: choose another folder, or move it away."
        )
    for path, text in texts.items():
        if not path.exists():
            _write(path, text)


def _holds(path: Path, text: str) -> bool:
    with contextlib.suppress(OSError):
        return not why_not_a_file(path) and path.read_bytes() == text.encode()
    return False
