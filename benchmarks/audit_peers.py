"""What other programs say of the releases that ``benchmarks/audit.py peers FOLDER`` writes.

``python benchmarks/audit_peers.py FOLDER`` in an environment with anonymeter, SDMetrics and
SynthEval; synrisk need not be there, and none is one of its dependencies.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd

CODES = ("Urban", "Race")


def anonymeter(people: pd.DataFrame, release: pd.DataFrame, control: pd.DataFrame) -> Iterator[str]:
    """Yield the risks of inference and linkability with their intervals."""
    from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator

    keys = ["Urban", "Race", "KidsCount", "LogExpenditure"]
    sought = {"aux_cols": keys, "secret": "LogIncome", "regression": True}
    inference = InferenceEvaluator(
        ori=people, syn=release, control=control, n_attacks=1000, **sought
    )
    link = LinkabilityEvaluator(
        ori=people, syn=release, control=control, n_attacks=1000, n_neighbors=1,
        aux_cols=(keys[:3], ["LogExpenditure", "LogIncome"]),
    )  # fmt: skip
    for name, evaluator in (("inference", inference), ("linkability", link)):
        evaluator.evaluate(n_jobs=1)
        risk = evaluator.risk()
        yield f"{name} {risk.value:.3f} ({risk.ci[0]:.3f}–{risk.ci[1]:.3f})"


def sdmetrics(people: pd.DataFrame, release: pd.DataFrame, _: pd.DataFrame) -> Iterator[str]:
    """Yield the share of rows that repeat nobody."""
    from sdmetrics.single_table import NewRowSynthesis

    kinds = {name: {"sdtype": "numerical"} for name in people}
    kinds |= {name: {"sdtype": "categorical"} for name in CODES}
    metadata = {"columns": kinds}
    new = NewRowSynthesis.compute(people, release, metadata, synthetic_sample_size=500)
    yield f"new rows {new:.3f}"


def syntheval(people: pd.DataFrame, release: pd.DataFrame, control: pd.DataFrame) -> Iterator[str]:
    """Yield adversarial accuracy, distances to the closest record, hits and identifiability."""
    from syntheval import SynthEval

    asked = SynthEval(people, holdout_dataframe=control, cat_cols=list(CODES), verbose=False)
    told = asked.evaluate(
        release,
        nnaa={"n_resample": 10},
        dcr={},
        nndr={},
        hit_rate={"thres_percent": 0.0333},
        eps_risk={},
        mia={"num_eval_iter": 5},
    )
    for row in told.to_dict("records"):
        yield f"{row['metric']} {row['val']:.3f} ± {row['err']:.3f}"


def main(folder: Path) -> None:
    """Print a line a release and program."""
    warnings.simplefilter("ignore")
    people, control = (pd.read_csv(folder / name) for name in ("people.csv", "control.csv"))
    programs: tuple[Callable[..., Iterator[str]], ...] = (anonymeter, sdmetrics, syntheval)
    for path in sorted(folder.glob("*.csv")):
        if path.name in ("people.csv", "control.csv"):
            continue
        release = pd.read_csv(path)
        for program in programs:
            start = time.process_time()
            tables = [frame.copy() for frame in (people, release, control)]
            for frame in tables:
                for name in CODES:
                    frame[name] = frame[name].astype(str)
            try:
                said = ", ".join(program(*tables))
            except Exception as error:
                said = f"{type(error).__name__}"
            cpu = time.process_time() - start
            print(f"{path.stem:<40} {program.__name__:<11} {said}; CPU {cpu:.1f} s", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
