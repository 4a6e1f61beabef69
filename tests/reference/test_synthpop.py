"""The measures that boards cite against synthpop's, and against loops over records."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from synrisk.audit.count_measures import count_measures

FOLDER = Path(__file__).parent / "oracle_synthpop"
RESULT = json.loads((FOLDER / "result.json").read_text(encoding="utf-8"))
PEOPLE, RELEASE = (pd.read_csv(FOLDER / f"{name}.csv") for name in ("confidential", "synthetic1"))
CASES = [name for name, one in RESULT.items() if isinstance(one, dict) and "target" in one]


@pytest.mark.parametrize("case", CASES)
def test_percentages_are_those_of_disclosure(case):
    expected = RESULT[case]
    found = count_measures(PEOPLE, RELEASE, expected["keys"], [expected["target"]], seed=1)
    for name, percentage in (expected["ident"] | expected["attrib"]).items():
        if not name.endswith("_denom"):
            assert 100 * found[name].value == pytest.approx(percentage, abs=1e-10), name


@pytest.mark.parametrize(
    ("case", "columns"),
    [("all", list(PEOPLE.columns)), ("keys4", ["region", "sex", "age", "eth"])],
)
def test_counts_are_those_of_replicated_uniques(case, columns):
    expected = RESULT["replicated_uniques"][case]
    found = count_measures(PEOPLE[columns], RELEASE[columns], columns, seed=1)
    n = expected["records"]
    assert found["UiO"].n_records == expected["unique_in_original"]
    assert found["UiS"].value * n == expected["unique_in_synthetic"]
    assert found["repU"].n_records == expected["replicated_uniques"]
    assert found["replicated uniques"].n_records == expected["replicated_uniques"]
    once = PEOPLE.groupby(columns).size()
    assert found["UiO"].records.tolist() == [
        label for label, row in zip(PEOPLE.index, PEOPLE[columns].itertuples(index=False),
                                    strict=True) if once[tuple(row)] == 1
    ]  # fmt: skip


def naive(records, rows, keys, target):
    """Return for each record what the rows with its keys say: some, one value, the right one."""
    found = []
    for label, record in records.iterrows():
        own = rows.drop(index=label, errors="ignore") if rows is records else rows
        met = own[(own[keys] == record[keys]).all(axis=1)]
        settled = met[target].nunique() == 1
        found.append((len(met) > 0, settled, settled and met[target].iloc[0] == record[target]))
    return np.array(found, dtype=bool)


def test_values_and_chances_are_those_of_a_loop_over_records():
    people, release = PEOPLE.iloc[:150], RELEASE.iloc[:120].set_axis(range(1000, 1120))
    keys, target = ["region", "sex", "age"], "ill"
    by_release, by_others = (naive(people, one, keys, target) for one in (release, people))

    found = count_measures(people, release, keys, [target], seed=1)

    for k, name in enumerate(("iS", "DiS", "DiSCO")):
        assert found[name].value == by_release[:, k].mean()
        assert found[name].chance == by_others[:, k].mean()
        assert found[name].records.tolist() == people.index[by_release[:, k]].tolist()
    n = people.groupby(keys)[target].transform("size").to_numpy()
    weight = (n - 1) / n
    right, settled = by_others[:, 2], by_others[:, 1]
    expected = weight[right].sum() / weight[settled].sum()
    assert found["TCAP"].chance == pytest.approx(expected, abs=1e-12)


def test_tcap_is_that_of_a_loop_over_rows():
    keys, target = ["region", "sex", "age", "eth"], "inc"
    shares = []
    by_keys = {cell: own[target] for cell, own in PEOPLE.groupby(keys)}
    for cell, rows in RELEASE.groupby(keys):
        if rows[target].nunique() == 1 and cell in by_keys:
            shares += [(by_keys[cell] == value).mean() for value in rows[target]]
    found = count_measures(PEOPLE, RELEASE, keys, [target], seed=1)
    assert found["TCAP"].value == pytest.approx(np.mean(shares), abs=1e-12)
