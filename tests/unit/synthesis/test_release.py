"""By what a dataset is known again."""

from dataclasses import replace

import numpy as np
from helpers.cases import one_gaussian, people

import synrisk as sr
from synrisk.synthesis.release import fingerprint, read_release


def prints(synthesizer, *datasets):
    return [fingerprint(one) for one in read_release(synthesizer.confidential, list(datasets))]


def test_the_same_rows_in_any_order_have_the_same_fingerprint(tmp_path):
    synthesizer, release = one_gaussian(n=400)
    shuffled = release.sample(frac=1.0, random_state=1)
    written = tmp_path / "release.csv"
    shuffled.to_csv(written, index=False)
    nearly = release.assign(b=np.nextafter(release["b"], np.inf))
    more = release.assign(unused=1)
    one, *others = prints(synthesizer, release, shuffled, str(written), nearly, more)
    assert others == [one] * 4


def test_other_rows_have_another():
    synthesizer, release = one_gaussian(n=400)
    one_changed = release.assign(b=release["b"].where(release.index != 7, 0.0))
    paired_otherwise = release.assign(b=release["b"].to_numpy()[::-1])
    twice = release.loc[[*release.index, 0]]
    found = prints(synthesizer, release, release.iloc[1:], one_changed, paired_otherwise, twice)
    assert len(set(found)) == 5


def test_levels_that_change_places_have_another():
    data = people(60)
    synthesizer = sr.fit(sr.Regression("o ~ x", "bernoulli"), data, n_draws=20, seed=1)
    swapped = data.assign(o=data["o"].to_numpy()[::-1])
    one, other = prints(synthesizer, data, swapped)
    assert one != other


def test_a_risk_knows_its_release_again_also_from_a_file(tmp_path):
    synthesizer, release = one_gaussian()
    risk = sr.attribute_risk(
        synthesizer, release, estimator="paper", diagnostics=False, question="paper"
    )
    assert list(risk.fingerprints) == prints(synthesizer, release)
    risk.save(tmp_path / "risk.nc")
    assert sr.AttributeRisk.load(tmp_path / "risk.nc").fingerprints == risk.fingerprints


def test_numbers_at_the_end_of_what_there_is():
    synthesizer, release = one_gaussian()
    (dataset,) = read_release(synthesizer.confidential, release)
    largest = np.full(len(release), np.finfo(float).max)
    found = fingerprint(replace(dataset, columns={**dataset.columns, "b": largest}))
    assert found not in prints(synthesizer, release)
