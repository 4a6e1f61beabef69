"""Public tables: columns are what somebody judged them to be, and releases hold what can be.

Those of scikit-learn, which is installed. The others of twenty tables, and those on which no rule
was made, are told in the same file and tried by ``make public-tables``.
"""

import tomllib
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets

import synrisk as sr
from synrisk.synthesis.column_kinds import kinds_of_columns

JUDGED = tomllib.loads(
    (Path(__file__).parent.parent / "data" / "public_columns.toml").read_text(encoding="utf-8")
)
NAMES = ("iris", "wine", "breast_cancer", "diabetes", "linnerud")
SENSITIVE = {
    "iris": ["petal length (cm)", "target"],
    "wine": ["proline", "magnesium", "target"],
    "breast_cancer": ["mean texture", "target"],
    "diabetes": ["target", "sex"],
    "linnerud": ["Chins", "Pulse"],
}


def table(name):
    loaded = getattr(datasets, f"load_{name}")(as_frame=True)
    if name in ("iris", "wine", "breast_cancer"):
        return loaded.frame.assign(target=[str(loaded.target_names[k]) for k in loaded.target])
    return loaded.frame


def test_twenty_tables_were_judged():
    assert len(JUDGED["tables"]) == 20


def test_columns_are_what_they_were_judged_to_be():
    right = {}
    for name in NAMES:
        kinds = kinds_of_columns(table(name))
        assert set(kinds) == set(JUDGED["tables"][name])
        for column, judged in JUDGED["tables"][name].items():
            right[name, column] = kinds[column].kind in judged.split("|")
    assert len(right) == 67
    assert np.mean(list(right.values())) >= 0.95


@pytest.mark.parametrize("name", NAMES)
def test_a_release_by_the_suggested_plan_holds_no_impossible_value(name):
    frame = table(name).sample(frac=1, random_state=0)  # the order of rows tells a flower's kind
    plan = sr.suggest_plan(frame, sensitive=SENSITIVE[name])
    assert {one.response for one in plan} == set(SENSITIVE[name])
    kept = frame.drop(columns=[*plan.drop])
    synthesizer = sr.fit(plan, kept, types=plan.types, missing=plan.missing, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sr.SynthesisWarning)
        (released,) = synthesizer.synthesize(seed=2)
    for column in SENSITIVE[name]:
        own, new = frame[column], released[column]
        if plan.reasons.loc[column, "kind"] in ("two classes", "classes", "ordered"):
            assert set(new.astype(str)) <= set(own.astype(str))
        else:
            assert np.isfinite(new).all()
            assert new.min() >= 0 or own.min() < 0
            assert (new == new.round()).all() or not (own == own.round()).all()
