"""Releases that must never pass: people copied in many ways, a guessed seed, people who stand out.

Each maker is given a synthesizer, its confidential data, honest datasets and random numbers, and
returns the release. ``benchmarks/dangerous_releases.py`` tries them at other sizes.
"""

from functools import lru_cache

import numpy as np
import pandas as pd

import synrisk as sr

PLAN = [sr.Regression("log(Exp) ~ Age + Sex"), sr.Regression("log(Income) ~ log(Exp) + Age")]
MADE = ["Exp", "Income"]


def office(n, seed):
    """A table such as offices have: two amounts to synthesize, and what is kept beside them."""
    rng = np.random.default_rng([n, seed])
    age = rng.integers(18, 90, n)
    sex, region = rng.choice(["f", "m"], n), rng.choice(list("abcd"), n)
    log_exp = 8.0 + 0.01 * age + 0.7 * rng.normal(size=n)
    log_income = 4.0 + 0.7 * log_exp + 0.8 * rng.normal(size=n) - 0.3 * rng.exponential(size=n)
    return pd.DataFrame(
        {
            "Age": age,
            "Sex": sex,
            "Region": region,
            "Exp": np.exp(log_exp),
            "Income": np.exp(log_income),
        }
    )


def shuffled(dataset, rng):
    return dataset.iloc[rng.permutation(len(dataset))].reset_index(drop=True)


def _logs(data):
    return np.log(data[MADE].to_numpy())


def _with(dataset, logs):
    return dataset.assign(**dict(zip(MADE, np.exp(logs).T, strict=True)))


def copied(which, noise=0.0, *, mixed=True):
    """Some people copied with so many standard deviations of noise, in other rows or their own."""

    def make(_, data, release, rng):
        made = []
        for dataset in release:
            logs, own = _logs(dataset), _logs(data)
            rows = which(data, rng)
            logs[rows] = own[rows] + noise * own.std(axis=0) * rng.normal(size=(len(rows), 2))
            made.append(shuffled(_with(dataset, logs), rng) if mixed else _with(dataset, logs))
        return made

    return make


def richest(n):
    return lambda data, _: np.argsort(-data["Income"].to_numpy())[:n]


def share(part):
    return lambda data, rng: rng.choice(len(data), int(part * len(data)), replace=False)


def blurred(correlation, *, mixed):
    """Everybody with noise, means and variances restored."""

    def make(_, data, release, rng):
        own, made = _logs(data), []
        for _ in release:
            noise = own.std(axis=0) * rng.normal(size=own.shape)
            logs = own.mean(axis=0) + correlation * (own - own.mean(axis=0))
            one = _with(data, logs + np.sqrt(1 - correlation**2) * noise)
            made.append(shuffled(one, rng) if mixed else one)
        return made

    return make


def moved(_, data, release, rng):
    """Everybody shifted by 3 % of a standard deviation and stretched by 2 %."""
    own = _logs(data)
    logs = own.mean(axis=0) + 1.02 * (own - own.mean(axis=0)) + 0.03 * own.std(axis=0)
    return [shuffled(_with(data, logs), rng) for _ in release]


def one_of_several(_, data, release, rng):
    return [*release[:-1], shuffled(data, rng)]


def guessed_seed(synthesizer, _, release, __):
    return synthesizer.synthesize(len(release), seed=1)


# By the number of records from which a kind is never missed.
MAKERS = {
    "a copy": (60, one_of_several),
    "the seed 1": (60, guessed_seed),
    "the 5 richest": (60, copied(richest(5))),
    "the 20 richest": (60, copied(richest(20))),
    "the 40 richest": (100, copied(richest(40))),
    "the 60 richest": (150, copied(richest(60))),
    "the 80 richest": (200, copied(richest(80))),
    "the 5 richest, noise 0.001": (60, copied(richest(5), 0.001)),
    "the 40 richest, noise 0.01": (100, copied(richest(40), 0.01)),
    "a tenth, noise 0.001": (60, copied(share(0.1), 0.001)),
    "a tenth, noise 0.01": (200, copied(share(0.1), 0.01)),
    "a tenth in place, noise 0.01": (200, copied(share(0.1), 0.01, mixed=False)),
    "a tenth in place, noise 0.05": (500, copied(share(0.1), 0.05, mixed=False)),
    "half, noise 0.01": (60, copied(share(0.5), 0.01)),
    "half, noise 0.05": (60, copied(share(0.5), 0.05)),
    "half in place, noise 0.2": (200, copied(share(0.5), 0.2, mixed=False)),
    "everybody moved": (60, moved),
    "everybody in place, correlation 0.95": (60, blurred(0.95, mixed=False)),
    "everybody in place, half a standard deviation of noise": (60, blurred(0.894, mixed=False)),
    "everybody in place, correlation 0.5": (200, blurred(0.5, mixed=False)),
    "everybody, correlation 0.95": (200, blurred(0.95, mixed=True)),
    "everybody, half a standard deviation of noise": (200, blurred(0.894, mixed=True)),
}  # fmt: skip


@lru_cache(maxsize=2)
def honest(n, m, seed):
    """Records, the models fitted to them, and a release that these drew."""
    data = office(n, seed)
    synthesizer = sr.fit(PLAN, data, n_draws=200, seed=2**80 + seed)
    return data, synthesizer, synthesizer.synthesize(m, seed=2**81 + seed)


def outcome(kind, n, m, seed, **options):
    """What is said of a release of a kind, made of so many records."""
    data, synthesizer, release = honest(n, m, seed)
    rng = np.random.default_rng([n, m, seed])
    if kind != "honest":
        release = MAKERS[kind][1](synthesizer, data, release, rng)
    try:
        risk = sr.attribute_risk(synthesizer, release, **options)
    except sr.DisclosureError:
        return "refused"
    return risk.verdict(further=0).outcome
