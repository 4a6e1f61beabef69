"""Limits, and verdicts on made-up and on evaluated records."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers.cases import one_gaussian, people
from helpers.secret import SECRET
from hypothesis import given, settings
from hypothesis import strategies as st

import synrisk as sr
from synrisk.core.measures import RecordMeasure, RecordMeasures, measures_of_truth
from synrisk.risk.release_checks import Closeness, Distance, ReleaseChecks, SeedTrial
from synrisk.verdict.criteria import DEFAULT
from synrisk.verdict.reasons import FAILED, PASSED, UNJUDGED, LimitReason
from synrisk.verdict.verdict import judge

PRIOR = 0.1
BETTER = {FAILED: 0, UNJUDGED: 1, PASSED: 2}


def checks(d2=5.0, p_smaller=0.5, copies=0):
    return ReleaseChecks(
        (Distance("y", 1, d2, 5.0, p_smaller),),
        close=(Closeness("nearest", 1, 1000, copies, 1.0, 0.0 if copies else 1.0, 1e-4),),
    )


def labels(n):
    return pd.Index([f"case{i}" for i in range(n)])


def measures(probability, mcse=0.0, reliable=True, before=PRIOR):
    """Of one variable y that is twice as probable as the joint."""
    after = np.asarray(probability, dtype=np.float64)
    error, sure = np.broadcast_to(mcse, after.shape), np.broadcast_to(reliable, after.shape)
    prior = np.full(after.shape, before)
    of_range = RecordMeasure(
        "log_odds_range", "joint", 10 * after, 10 * error, sure, prior, after, is_log=True
    )
    return RecordMeasures(
        [
            *measures_of_truth("joint", prior, after, error, error, sure),
            of_range,
            *measures_of_truth("y", 2 * prior, 2 * after, 2 * error, 2 * error, sure),
        ]
    )


def verdict(of, checked=None, n_records=None, **limits):
    checked = checks() if checked is None else checked
    n = of.n_records
    return judge(
        sr.Criteria(**limits), of, labels(n), checked, n if n_records is None else n_records
    )


LIMITS = [
    ({"gain": 0.1}, 0.2),
    ({"probability": 0.2}, 0.2),
    ({"lift": 2}, 0.2),
    ({"log_odds_range": 2}, 0.2),
    ({"variables": sr.Criteria(gain=0.2)}, 0.2),
    ({"variables": sr.Criteria(probability=0.4)}, 0.2),
    ({"gain": 0.1, "probability": 0.15, "combine": "and"}, 0.2),
    ({"variables": {"y": sr.Criteria(lift=2)}}, 0.2),
]


@pytest.mark.parametrize(("limits", "at"), LIMITS)
def test_a_record_at_the_limit_is_within_and_one_above_is_over(limits, at):
    assert verdict(measures([0.05, at]), **limits).outcome == "passed"
    assert verdict(measures([0.05, at * (1 + 1e-12)]), **limits).outcome == "passed"  # rounding
    assert verdict(measures([0.05, at * (1 + 1e-7)]), **limits).outcome == "failed"


@pytest.mark.parametrize(("limits", "at"), LIMITS)
def test_a_record_whose_error_reaches_over_the_limit_is_undecided(limits, at):
    for value in (at - 0.01, at + 0.01):
        assert verdict(measures([0.05, value], 0.0052), **limits).outcome == "cannot be judged"
    assert verdict(measures([0.05, at - 0.01], 0.0051), **limits).outcome == "passed"
    assert verdict(measures([0.05, at + 0.01], 0.0051), **limits).outcome == "failed"


@pytest.mark.parametrize(("limits", "at"), LIMITS)
def test_nothing_unknown_passes(limits, at):
    for table in (
        measures([0.05, np.nan]),
        measures([0.05, 0.05], [0.0, np.nan]),
        measures([0.05, 0.05], reliable=[True, False]),
        measures([0.05, 2 * at], reliable=[True, False]),
    ):
        assert verdict(table, **limits).outcome == "cannot be judged"
    assert verdict(measures([2 * at, np.nan]), **limits).outcome == "failed"


def test_a_share_of_the_records_may_exceed_a_limit():
    for n_over, outcome in ((29, "passed"), (30, "failed")):  # 0.29 · 100 is below 29
        table = measures([0.3] * n_over + [0.05] * (100 - n_over))
        assert verdict(table, probability=0.2, share=0.29).outcome == outcome
    table = measures([0.3] * 28 + [0.05] * 72, reliable=[True] * 98 + [False] * 2)
    assert verdict(table, probability=0.2, share=0.29).outcome == "cannot be judged"
    assert verdict(table, probability=0.2, share=0.3).outcome == "passed"
    assert verdict(table, probability=0.2, share=0.27).outcome == "failed"


def test_limits_are_judged_by_themselves_and_all_must_hold():
    table = measures([0.25] + [0.05] * 99)
    judged = verdict(table, probability=0.2, lift=3, variables=sr.Criteria(probability=0.6))
    assert [reason.outcome for reason in judged.reasons] == ["failed", "passed", "passed", "passed"]
    assert judged.outcome == "failed"
    assert verdict(table, probability=0.3, lift=3).outcome == "passed"
    # The share of the joint is not that of a variable.
    limits = {"probability": 0.2, "share": 0.01, "variables": sr.Criteria(probability=0.4)}
    assert verdict(table, **limits).outcome == "failed"


def test_records_that_were_not_evaluated_are_undecided():
    table = measures([0.05] * 30)
    judged = verdict(table, n_records=40, probability=0.2)
    assert judged.outcome == "cannot be judged"
    assert judged.reasons[0].undecided == {"not evaluated": 10}
    assert verdict(table, n_records=40, probability=0.2, share=0.25).outcome == "passed"
    assert verdict(measures([0.3]), n_records=40, probability=0.2).outcome == "failed"
    assert judged.sentences()[0].startswith("For none of the 30 records evaluated (there are 40) ")
    over = verdict(measures([0.3] * 15 + [0.05] * 15), n_records=40, probability=0.2, share=0.1)
    assert over.sentences()[0] == (
        "For 15 of the 30 records evaluated (there are 40) (50 %) an intruder's probability of the "
        "true values exceeds 0.2; it may for 10 % of all; for 10 this cannot be said (not "
        "evaluated)."
    )


@pytest.mark.parametrize(
    ("values", "share", "told"),
    [
        ([0.05] * 20, 0.0, "For no records does {} exceed 0.2."),
        ([0.3] + [0.05] * 19, 0.0, "For some records {} exceeds 0.2."),
        ([0.3] + [0.05] * 19, 0.1, "For at most 10 % of records {} exceeds 0.2."),
        ([0.3] * 3 + [0.05] * 17, 0.1, "For more than 10 % of records {} exceeds 0.2."),
        ([0.19] * 20, 0.0, "Whether for some records {} exceeds 0.2 cannot be said."),
    ],
)
def test_outside_a_limit_is_kept_or_not_and_nothing_is_counted(values, share, told):
    error = 0.01 if values[0] == 0.19 else 0.0
    judged = verdict(measures(values, error), probability=0.2, share=share)
    belief = "an intruder's probability of the true values"
    assert told.format(belief) in judged.sentences(sharing=True)
    stored = judged.to_json(sharing=True)["reasons"][0]
    assert set(stored) == {"kind", "outcome", "of", "limits", "share", "sentence"}


def test_a_release_that_is_not_of_the_models_cannot_be_judged_and_copies_fail():
    guessed = replace(checks(), seed_trials=(SeedTrial(1, 1000, 80.0, 1000),))
    for bad, outcome in {
        checks(200.0, 1.0): UNJUDGED,
        checks(0.0, 0.0): UNJUDGED,
        checks(copies=500): FAILED,
        guessed: FAILED,
    }.items():
        judged = verdict(measures([0.05] * 20), bad, probability=0.2)
        assert judged.outcome == outcome
        assert judged.sentences()[0] == " ".join(bad.failures)
        assert "fails a check of what every number" in judged.sentences(sharing=True)[0]
        assert verdict(measures([0.3] * 20), bad, probability=0.2).outcome == "failed"


def test_a_release_that_could_not_be_checked_passes_only_where_the_criteria_say_so():
    unknown, known = checks(np.nan, np.nan), checks()
    judged = verdict(measures([0.05]), unknown, probability=0.2)
    assert judged.outcome == "cannot be judged"
    assert "could not be checked for y." in judged.sentences()[0]
    accepted = verdict(measures([0.05]), unknown, probability=0.2, unchecked_release="accept")
    assert accepted.outcome == "passed"
    assert "for y. The criteria accept that." in accepted.sentences()[-1]
    # A dataset that was compared does not speak for one that was not.
    second = replace(unknown.distances[0], dataset=2)
    both = ReleaseChecks((*known.distances, second), close=known.close)
    judged = verdict(measures([0.05]), both, probability=0.2)
    assert judged.outcome == "cannot be judged"
    assert "for y in dataset 2." in judged.sentences()[0]
    # What was found against a release is not accepted with it.
    copied = ReleaseChecks(unknown.distances, close=checks(copies=500).close)
    judged = verdict(measures([0.05]), copied, probability=0.2, unchecked_release="accept")
    assert judged.outcome == "failed"


def test_sentences():
    table = measures([0.3] * 12 + [0.05] * 5114, reliable=[True] * 5123 + [False] * 3)
    judged = verdict(
        table, probability=0.2, lift=4, share=0.002, variables={"y": sr.Criteria(lift=5)}
    )
    assert "\n".join(judged.sentences()) == (
        "For 12 of 5,126 records (0.234 %) an intruder's probability of the true values exceeds "
        "0.2; it may for 0.2 % of them; for 3 this cannot be said (not reliable).\n"
        "For none of the 5,123 records of which that is known does the release multiply an "
        "intruder's probability of the true y by more than 5; for 3 this cannot be said (not "
        "reliable).\n"
        "For none of the 5,123 records of which that is known does the release multiply an "
        "intruder's probability of the true values by more than 4; it may for 0.2 % of them; for 3 "
        "this cannot be said (not reliable).\n"
        "The release looks as if it came from these models, which the risk assumes."
    )
    assert str(judged).splitlines()[0] == (
        "Failed. Do not release it as it is: a limit is not kept."
    )
    assert repr(judged) == "<Verdict: failed; 3 limits>"
    nobody = verdict(measures([0.3] * 20, reliable=[False] * 20), lift=4)
    assert nobody.sentences()[0] == (
        "Whether for any of 20 records the release multiplies an intruder's probability of the "
        "true values by more than 4 cannot be said (not reliable)."
    )
    ranges = verdict(measures([0.3] * 20), log_odds_range=2)
    assert ranges.sentences()[0] == (
        "For all 20 records the release moves an intruder's log odds between guesses by more than "
        "2; it may for none."
    )


def test_a_limit_below_the_prior_is_said_to_be_hopeless():
    judged = verdict(measures([0.3] * 20 + [0.01] * 20), variables=sr.Criteria(probability=0.15))
    assert judged.reasons[0].n_before == 20
    said = "For 20 of these the prior exceeds it already, before the release."
    assert judged.sentences()[0].endswith(said)
    assert "prior" not in judged.sentences(sharing=True)[0]


COUNTS = st.integers(1, 60).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(0, n)).flatmap(
        lambda pair: st.tuples(
            st.just(pair[0]), st.just(pair[1]), st.integers(0, pair[0] - pair[1])
        )
    )
)


@settings(max_examples=100, deadline=None)
@given(COUNTS, st.sampled_from([0.0, 0.5]))
def test_what_is_shared_depends_on_the_outcome_alone(counts, share):
    n, n_over, n_undecided = counts
    table = measures(
        [0.9] * n_over + [0.05] * (n - n_over),
        reliable=[True] * (n - n_undecided) + [False] * n_undecided,
    )
    judged = verdict(table, probability=0.25, share=share)
    like = {
        "passed": measures([0.05]),
        "failed": measures([0.9]),
        "cannot be judged": measures([0.05], reliable=[False]),
    }[judged.outcome]
    other = verdict(like, probability=0.25, share=share)
    assert other.to_json(sharing=True) == judged.to_json(sharing=True)


VALUES = st.lists(st.floats(0.0, 0.5), min_size=1, max_size=12)


@settings(max_examples=200, deadline=None)
@given(VALUES, st.floats(0, 0.1), st.floats(1.0, 20.0), st.floats(0.0, 0.4))
def test_larger_errors_never_turn_a_verdict_round(values, error, factor, share):
    one = verdict(measures(values, error), probability=0.2, share=share).outcome
    other = verdict(measures(values, error * factor), probability=0.2, share=share).outcome
    assert other in (one, "cannot be judged")


@settings(max_examples=200, deadline=None)
@given(
    VALUES,
    st.floats(0, 0.1),
    st.floats(0.01, 1.0),
    st.floats(0.0, 1.0),
    st.floats(0.0, 0.9),
    st.floats(0.0, 1.0),
    st.sampled_from(["gain", "probability", "lift", "log_odds_range"]),
)
def test_a_higher_limit_or_share_never_worsens_the_verdict(
    values, error, limit, raised, share, more, measure
):
    table = measures(values, error)
    higher = min(1.0, limit + raised * (1.0 - limit))
    one = verdict(table, **{measure: limit}, share=share).outcome
    assert BETTER[verdict(table, **{measure: higher}, share=share).outcome] >= BETTER[one]
    larger = share + more * (0.99 - share) if share < 0.99 else share
    assert BETTER[verdict(table, **{measure: limit}, share=larger).outcome] >= BETTER[one]


def test_limits_that_are_combined_count_only_where_all_are_exceeded():
    limits = {"probability": 0.25, "lift": 2, "combine": "and"}
    improbable = RecordMeasures(
        measures_of_truth("joint", *np.array([[0.01], [0.1], [0.0], [0.0]]), np.array([True]))
    )
    assert verdict(improbable, lift=2).outcome == "failed"
    assert verdict(improbable, **limits).outcome == "passed"
    judged = verdict(measures([0.3] + [0.05] * 19), **limits)
    assert judged.outcome == "failed"
    assert judged.reasons[0].limits == {"probability": 0.25, "lift": 2.0}
    assert judged.sentences()[0] == (
        "For 1 of 20 records (5 %) an intruder's probability of the true values exceeds 0.25 and "
        "the release multiplies an intruder's probability of the true values by more than 2; it "
        "may for none."
    )
    assert list(judged.records.columns) == ["probability_and_lift"]
    # One limit that is kept for sure settles it, whatever is known of the other.
    unsure = measures([0.3, 0.05], [0.1, 0.02])
    assert verdict(unsure, probability=0.6, lift=2, combine="and").outcome == "passed"
    assert verdict(unsure, probability=0.6, lift=2).outcome == "cannot be judged"
    assert verdict(unsure, **limits).outcome == "cannot be judged"


def test_each_reason_is_marked_by_itself():
    judged = verdict(measures([0.25] + [0.05] * 19, [0.03] + [0.0] * 19), gain=0.3, lift=2)
    assert [mark for mark, _ in judged.marked()] == ["undecided", "kept", "kept"]
    failed = verdict(measures([0.25] + [0.05] * 19), gain=0.1, lift=3)
    assert [mark for mark, _ in failed.marked()] == ["failed", "kept", "kept"]
    assert str(failed).splitlines()[1] == (
        "- Failed: For 1 of 20 records (5 %) the release raises an intruder's probability of the "
        "true values by more than 10 percentage points; it may for none."
    )


@pytest.mark.parametrize(
    ("errors", "mark", "said"),
    [
        (0.0, "failed", "Not all of 2 limits are kept; which are is told inside."),
        (0.06, "undecided", "Whether all of 2 limits are kept cannot be said; what is known is "),
    ],
)
def test_of_several_limits_is_not_shared_which_are_kept(errors, mark, said):
    """That may hang on one record where the verdict does not."""
    found = measures([0.25] + [0.05] * 19, [errors] + [0.0] * 19)
    one, other = verdict(found, gain=0.1, lift=100), verdict(found, gain=0.9, lift=2.2)
    for judged in (one, other):
        (first, sentence), *_ = judged.marked(sharing=True)
        assert first == mark
        assert sentence.startswith(said)
        assert "for no records does the release raise an intruder's" in sentence
        kinds = [reason["kind"] for reason in judged.to_json(sharing=True)["reasons"]]
        assert kinds == ["limits", "release"]


@pytest.mark.parametrize("bad", [checks(copies=40), checks(200.0, 1.0)])
def test_limits_are_void_where_a_check_failed(bad):
    judged = verdict(measures([0.15] * 20), bad, gain=0.1)
    for sharing in (False, True):
        marked = judged.marked(sharing=sharing)
        assert [mark for mark, _ in marked] == ["failed", "void"]
        assert marked[1][1] == (
            "Whether for some records the release raises an intruder's probability of the true "
            "values by more than 10 percentage points cannot be said: the limit assumes what a "
            "check rules out."
        )
        (limit,) = (
            one for one in judged.to_json(sharing=sharing)["reasons"] if one["kind"] == "limit"
        )
        assert limit["outcome"] == "cannot be judged"
    exceeded = verdict(measures([0.3] * 20), bad, gain=0.1)
    assert [mark for mark, _ in exceeded.marked()] == ["failed", "failed"]


def test_what_follows_is_said_in_a_sentence():
    kept, failed = measures([0.05] * 20), measures([0.3] * 20)
    good = verdict(kept, probability=0.2)
    lucky = good.beside([failed, failed])
    copied = verdict(kept, checks(copies=7), probability=0.2)
    unknown = verdict(measures([0.05] * 20, reliable=False), probability=0.2)
    accepted = verdict(kept, checks(np.nan, np.nan), probability=0.2, unchecked_release="accept")
    said = {
        good: "It keeps the limits, and no check speaks against it.",
        lucky: "It keeps the limits; read what speaks against it before you sign.",
        copied: "Do not release it: it fails a check, so the limits tell nothing of it.",
        unknown: "Do not release it on this evidence: nobody knows whether it keeps the limits.",
        accepted: "It keeps the limits, but not all that they assume could be checked.",
        verdict(failed, probability=0.2): "Do not release it as it is: a limit is not kept.",
    }
    for judged, sentence in said.items():
        assert judged.meaning() == sentence
        assert str(judged).splitlines()[0].endswith(sentence)
        assert judged.to_json()["meaning"] == sentence
    assert lucky.headline == "Passed, with 1 warning"
    # Outside nobody is told of warnings, nor that there are none.
    assert lucky.to_json(sharing=True) == good.to_json(sharing=True)
    assert good.meaning(sharing=True) == (
        "It keeps the limits. Warnings, if there are any, are told inside alone."
    )


def test_further_releases_are_told_beside_the_verdict_and_do_not_decide_it():
    own = verdict(measures([0.15] * 20), gain=0.1)
    others = [measures([value] * 20) for value in (0.12, 0.19, 0.25)]
    judged = own.beside(others)
    assert judged.outcome == own.outcome == "passed"
    mark, words = judged.marked()[-1]
    assert mark == "note"
    assert words == (
        "Of 3 further releases drawn from the same models to compare, 1 does not keep these "
        "limits; the largest gain in them is 4.0 to 30.0 percentage points, in this one 10.0."
    )
    assert judged.to_json(sharing=True) == own.to_json(sharing=True)  # it is for inside
    assert judged.marked(sharing=True) == own.marked(sharing=True)
    assert judged.to_json()["reasons"][-1]["own"] == pytest.approx(0.1)  # of y
    assert own.beside([]) is own


def test_a_release_that_passes_where_others_fail_is_called_lucky():
    own, others = verdict(measures([0.15] * 20), gain=0.1), [measures([0.25] * 20)] * 2
    kept = measures([0.12] * 20)
    mark, words = own.beside([*others, kept, kept]).marked()[0]
    assert mark == "warning"
    assert words.startswith("This release is lucky. Of 4 further")
    assert "2 do not keep these limits" in words
    assert own.beside([*others, kept, kept, kept]).marked()[-1][0] == "note"
    failed = verdict(measures([0.25] * 20), gain=0.1)
    assert failed.beside(others).marked()[-1][0] == "note"


def test_what_is_released_as_it_is_stands_beside_the_verdict():
    checked = replace(checks(), as_is=("Affairs", "Region"))
    judged = verdict(measures([0.15] * 20), checked, gain=0.1)
    assert judged.outcome == "passed"
    for sharing in (False, True):
        mark, words = judged.marked(sharing=sharing)[-1]
        assert mark == "note"
        assert words.startswith("Released as they are, and not judged here: Affairs, Region.")


def test_records_names_those_over_a_limit_and_the_undecided():
    table = measures([0.3, 0.05, 0.05], reliable=[True, True, False])
    judged = verdict(table, probability=0.2, variables=sr.Criteria(lift=5))
    assert judged.records.to_dict("index") == {
        "case0": {"probability": "over", "lift_y": "within"},
        "case2": {"probability": "undecided", "lift_y": "undecided"},
    }
    changed = judged.records
    changed.loc[:, "probability"] = "within"
    assert judged.records.loc["case0", "probability"] == "over"


@pytest.mark.parametrize(
    "criteria",
    [
        sr.Criteria(probability=0.2, lift=2, share=0.1, name="ours"),
        sr.Criteria(variables={"y": sr.Criteria(lift=2, share=0.1), "share": sr.Criteria(lift=3)}),
        sr.Criteria.named("cell-of-5"),
        sr.Criteria.named("p-percent"),
        sr.Criteria(lift=2, unchecked_release="accept"),
    ],
)
def test_criteria_come_back_from_json(criteria):
    assert sr.Criteria.from_json(json.loads(json.dumps(criteria.to_json()))) == criteria


def test_json_holds_no_label_and_comes_back():
    criteria = sr.Criteria(lift=2, variables={"y": sr.Criteria(probability=0.5)}, name="ours")
    judged = judge(criteria, measures([0.3] * 3), labels(3), checks(), 3)
    text = json.dumps(judged.to_json(), allow_nan=False)
    assert "case" not in text
    stored = json.loads(text)
    assert stored["outcome"] == "failed"
    assert stored["criteria"]["name"] == "ours"
    assert [one["outcome"] for one in stored["reasons"]] == ["failed", "failed", "passed"]
    assert stored["reasons"][0]["n_over"] == 3


MISTAKES = {
    "no limit": (lambda: sr.Criteria(), "there is no limit"),
    "gain in percent": (lambda: sr.Criteria(gain=10), "gain must be a number from 0 to 1"),
    "combined by or": (lambda: sr.Criteria(gain=0.1, combine="or"), "combine must be one of"),
    "a source that is no text": (lambda: sr.Criteria(gain=0.1, source=3), "source must be text"),
    "a source of a variable": (
        lambda: sr.Criteria(variables=sr.Criteria(gain=0.1, source="us")),
        "source is of the whole policy",
    ),
    "negative": (lambda: sr.Criteria(probability=-0.1), "must be a number from 0 to 1; got -0.1"),
    "above one": (lambda: sr.Criteria(probability=20), "must be a number from 0 to 1; got 20"),
    "a bool": (lambda: sr.Criteria(lift=True), "lift must be a number above 0"),
    "text": (lambda: sr.Criteria(lift="2"), "lift must be a number above 0 .* got '2'"),
    "lift of 0": (lambda: sr.Criteria(lift=0), "lift must be a number above 0"),
    "nan": (lambda: sr.Criteria(log_odds_range=np.nan), "log_odds_range must be"),
    "infinite": (lambda: sr.Criteria(lift=np.inf), "lift must be"),
    "share in percent": (lambda: sr.Criteria(lift=2, share=5), "share must be a share"),
    "no share": (lambda: sr.Criteria(lift=2, share=None), "share must be a share"),
    "share of nothing": (
        lambda: sr.Criteria(share=0.1, variables=sr.Criteria(lift=2)),
        "put it beside a limit",
    ),
    "a number for a variable": (
        lambda: sr.Criteria(variables={"y": 0.2}),
        r"variables\['y'\] must be a Criteria",
    ),
    "an empty dict": (lambda: sr.Criteria(lift=2, variables={}), "got an empty dict"),
    "a list": (lambda: sr.Criteria(lift=2, variables=["y"]), "got a list"),
    "range of a variable": (
        lambda: sr.Criteria(variables={"y": sr.Criteria(log_odds_range=2)}),
        "log_odds_range is of the joint guesses",
    ),
    "variables of a variable": (
        lambda: sr.Criteria(variables={"y": sr.Criteria(variables=sr.Criteria(lift=2))}),
        "no variables of their own",
    ),
    "a name that is no text": (lambda: sr.Criteria(lift=2, name=3), "name must be text"),
    "a policy that is not there": (lambda: sr.Criteria.named("cell-of-6"), "Did you mean 'cell-of"),
    "unknown variable": (
        lambda: verdict(measures([0.1]), variables={"yy": sr.Criteria(lift=2)}),
        "'yy', which is not synthesized. Did you mean 'y'?",
    ),
    "a dict for criteria": (
        lambda: judge({"lift": 2}, measures([0.1]), labels(1), checks(), 1),
        "verdict takes criteria",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake):
    wrong, message = MISTAKES[mistake]
    with pytest.raises(sr.OptionError, match=message):
        wrong()


POLICIES = """\
[public-use]
probability = 0.2
lift = 2
share = 0.001  # one in a thousand
variables.LogIncome = { probability = 0.5 }

[on-site]
lift = 5
unchecked_release = "accept"
[on-site.variables]
lift = 5
"""


def test_policies_are_read_by_name(tmp_path):
    path = tmp_path / "policies.toml"
    path.write_text(POLICIES, encoding="utf-8")
    assert sr.Criteria.from_toml(path, "public-use") == sr.Criteria(
        probability=0.2,
        lift=2,
        share=0.001,
        variables={"LogIncome": sr.Criteria(probability=0.5)},
        name="public-use",
    )
    assert sr.Criteria.from_toml(str(path), "on-site") == sr.Criteria(
        lift=5, variables=sr.Criteria(lift=5), unchecked_release="accept", name="on-site"
    )
    with pytest.raises(sr.OptionError, match="holds 2 policies; choose one by name="):
        sr.Criteria.from_toml(path)
    with pytest.raises(sr.OptionError, match=r"no policy 'onsite'\. Did you mean 'on-site'"):
        sr.Criteria.from_toml(path, "onsite")
    path.write_text("[only]\nlift = 2\n", encoding="utf-8")
    assert sr.Criteria.from_toml(path).name == "only"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lift = 2\n", "line 1, lift: stands outside a policy"),
        ("# none\n", "holds no policy"),
        ("[a]\n\nlifts = 2\n", "line 3, a.lifts: there is no such setting. Did you mean 'lift'"),
        ("[a]\nlift = 2\nprobability = 20\n", "line 3, a.probability: must be a number from 0 to"),
        ('[a]\nlift = "2"\n', "line 2, a.lift: must be a number above 0"),
        ("[a]\nlift = true\n", "line 2, a.lift: must be a number above 0"),
        ("[a]\nlift = nan\n", "line 2, a.lift: must be a number above 0"),
        ('[a]\nlift = 2\nunchecked_release = "pass"\n', "line 3, a.unchecked_release: must be one"),
        ('[a]\ngain = 0.1\ncombine = "or"\n', "line 3, a.combine: must be one"),
        ('[a]\nvariables = { gain = 0.1, source = "us" }\n', "a.variables.source: there is no"),
        ("[a]\nvariables = { unchecked_release = 1 }\n", "unchecked_release: is of the whole"),
        ("\n[a]\n", "line 2, a: there is no limit"),
        ("[a]\nvariables = 3\n", r"line 2, a.variables: must be a table"),
        ("[a]\n[a.variables.y]\nlog_odds_range = 1\n", "line 3, a.variables.y.log_odds_range: is"),
        ("[a]\nvariables = { y = { shar = 1 } }\n", "line 2, a.variables.y.shar: there is no such"),
        ("[a]\nvariables = { y = {} }\n", "line 2, a.variables.y: there is no limit"),
        ("[a]\nvariables = {}\n", "line 2, a.variables: there is no limit"),
    ],
)
def test_mistakes_in_a_file_are_named_by_line_and_key(tmp_path, text, message):
    path = tmp_path / "policies.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(sr.SettingsError, match=message):
        sr.Criteria.from_toml(path)


def test_built_in_policies():
    assert sr.Criteria.named("cell-of-5").probability == 0.2
    assert sr.Criteria.named("cell-of-11").for_variable("any").probability == 0.09
    for name in ("gain-of-10", "p-percent", "wp216-inference", "cell-of-5", "cell-of-11"):
        policy = sr.Criteria.named(name)
        assert policy.name == name
        assert policy.source
        # A variable by itself is held to what all of them together are.
        assert policy.for_variable("any").limits == policy.limits
        assert policy.for_variable("any").combine == policy.combine


def test_the_policy_by_default_is_the_first_of_the_built_in_ones():
    named = sr.Criteria.named("gain-of-10")
    assert replace(named, name=None, source=None) == DEFAULT


def fitted():
    synthesizer = sr.fit(sr.Regression("b ~ x"), people(200), seed=1)
    return synthesizer, synthesizer.synthesize(m=1, seed=SECRET + 2)


def test_verdicts_on_a_release():
    synthesizer, release = fitted()
    risk = sr.attribute_risk(synthesizer, release, question="paper")
    at = risk.records["lift"].max()
    limits = sr.Criteria(probability=0.5, lift=at, variables={"b": sr.Criteria(lift=at)})
    assert risk.verdict(limits).outcome == "passed"
    failed = risk.verdict(sr.Criteria(lift=at * (1 - 1e-6)))
    assert failed.outcome == "failed"
    assert list(failed.records.index) == [risk.records["lift"].idxmax()]
    some = sr.attribute_risk(synthesizer, release, records=[0, 1], question="paper")
    assert some.verdict(limits).outcome == "cannot be judged"
    unchecked = sr.attribute_risk(
        synthesizer, release, diagnostics=False, question="paper"
    ).verdict(limits)
    assert unchecked.outcome == "cannot be judged"
    assert "diagnostics=False" in " ".join(unchecked.sentences())
    copy = synthesizer.data[release[0].columns]
    copied = sr.attribute_risk(synthesizer, copy, question="paper").verdict(sr.Criteria(lift=2))
    assert copied.outcome == "failed"


def test_lift_of_a_variable_is_over_its_own_prior():
    synthesizer, release = fitted()
    risk = sr.attribute_risk(
        synthesizer, release, intruder_prior=sr.TruthFactor(5), question="paper"
    )
    prior = risk.summary().loc["b", "prior"]
    at = (risk.records["probability_b"] / prior).max()
    for factor, outcome in ((1.0, "passed"), (1 - 1e-6, "failed")):
        limits = sr.Criteria(variables=sr.Criteria(lift=at * factor))
        assert risk.verdict(limits).outcome == outcome


def test_the_papers_estimator_gives_no_error_so_no_verdict():
    synthesizer, release = one_gaussian()
    risk = sr.attribute_risk(synthesizer, release, estimator="paper", question="paper")
    judged = risk.verdict(sr.Criteria(probability=0.99))
    assert judged.of_limits == "cannot be judged"
    [reason] = [one for one in judged.reasons if isinstance(one, LimitReason)]
    assert reason.undecided == {"the number's error is not known": 40}


# -- another question ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, None),
        ({"tolerance": 0.2}, None),
        ({"tolerance": 1e-3}, "less than usual counts as near to y"),
        ({"question": "paper"}, "not in a whole range; before the release"),
        ({"intruder_prior": "model"}, "believes something else"),
        ({"guesses": sr.Interval(9, -50, 50)}, "not in a whole range"),
    ],
)
def test_a_verdict_says_where_another_question_was_asked(options, said, tmp_path):
    """An outlier that the question to sign by finds passes under others."""
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"x": rng.normal(size=100)})
    data["y"] = 10 * data["x"] + 3 * rng.normal(size=100)
    synthesizer = sr.fit(sr.Regression("y ~ x"), data, seed=1)
    risk = sr.attribute_risk(synthesizer, synthesizer.synthesize(seed=SECRET), **options)
    risk.save(tmp_path / "risk.nc")
    for one in (risk, sr.AttributeRisk.load(tmp_path / "risk.nc")):
        for sharing in (False, True):
            told = [text for mark, text in one.verdict(further=0).marked(sharing=sharing)]
            about = [text for text in told if "another question" in text]
            assert bool(about) == (said is not None)
            assert said is None or said in about[0]
