"""Draws in files as R writes them: RDS, RData, write.csv with row names, coda."""

import sys

import numpy as np
import pytest
from helpers.cases import people
from helpers.rds import save_rdata, save_rds

import synrisk as sr

DRAWS_DF = ("draws_df", "draws", "tbl_df", "tbl", "data.frame")
BRMS = {
    "b_Intercept": [0.1, 0.2, 0.3, 0.4],
    "b_x": [1.0, 2.0, 3.0, 4.0],
    "Intercept": [9.0, 9.0, 9.0, 9.0],
    "lprior": [-1.0, -1.0, -1.0, -1.0],
    "lp__": [-9.5, -9.0, -9.25, -9.0],
    ".chain": [1, 1, 2, 2],
    ".iteration": [1, 2, 1, 2],
    ".draw": [1, 2, 3, 4],
}


def slopes(path):
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("k ~ x", "poisson"), people(), path)
    posterior = synthesizer.models[0].posterior
    chain = None if posterior.chain is None else list(posterior.chain)
    return list(posterior.coefficients[:, 1, 0]), chain


def test_draws_that_saverds_wrote(tmp_path):
    save_rds(tmp_path / "fit.rds", BRMS, DRAWS_DF)
    assert slopes(tmp_path / "fit.rds") == ([1, 2, 3, 4], [0, 0, 1, 1])


def test_draws_that_save_wrote(tmp_path):
    save_rdata(tmp_path / "fit.RData", {"draws": BRMS})
    assert slopes(tmp_path / "fit.RData") == ([1, 2, 3, 4], [0, 0, 1, 1])


def test_several_objects_are_refused_by_name(tmp_path):
    save_rdata(tmp_path / "fit.rda", {"one": BRMS, "other": BRMS})
    with pytest.raises(sr.SynriskError, match=r"2 objects \(one, other\)"):
        slopes(tmp_path / "fit.rda")


def test_half_a_file_is_refused(tmp_path):
    save_rds(tmp_path / "fit.rds", BRMS)
    whole = (tmp_path / "fit.rds").read_bytes()
    (tmp_path / "fit.rds").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(sr.SynriskError, match="holds no data frame") as raised:
        slopes(tmp_path / "fit.rds")
    assert raised.value.__cause__ is None


def test_without_pyreadr_the_extra_is_named(tmp_path, monkeypatch):
    save_rds(tmp_path / "fit.rds", BRMS)
    monkeypatch.setitem(sys.modules, "pyreadr", None)
    with pytest.raises(sr.SynriskError, match=r"synrisk\[r\]"):
        slopes(tmp_path / "fit.rds")


@pytest.mark.parametrize(
    ("header", "chain"),
    [
        ('"","(Intercept)","x"', None),  # write.csv with row names
        ('"Unnamed: 0","(Intercept)","x"', None),
        ('"X","X.Intercept.","x"', None),  # read.csv and write.csv once more
        ('".chain","Intercept","x"', [0, 0, 0, 1]),
    ],
)
def test_row_names_of_write_csv(tmp_path, header, chain):
    counts = [1, 2, 3, 4] if chain is None else [1, 1, 1, 2]
    lines = [f'"{k}",0.5,{slope}.0' for slope, k in enumerate(counts, 1)]
    (tmp_path / "fit.csv").write_text("\n".join([header, *lines]), encoding="utf-8")
    assert slopes(tmp_path / "fit.csv") == ([1, 2, 3, 4], chain)


@pytest.mark.parametrize(
    "header",
    [
        '"","CHAIN","ITER","beta[1]","beta[2]","deviance"',
        '"","CHAIN","ITER","beta.1.","beta.2.","deviance"',
    ],
)
def test_tables_of_coda(tmp_path, header):
    """write.csv(as.matrix(samples, chains = TRUE, iters = TRUE)) of a run of JAGS."""
    lines = [f'"{k}",{1 + (k > 2)},{1001 + k},0.5,{k}.0,77.1' for k in range(1, 5)]
    (tmp_path / "fit.csv").write_text("\n".join([header, *lines]), encoding="utf-8")
    found, chain = slopes(tmp_path / "fit.csv")
    np.testing.assert_array_equal(found, [1, 2, 3, 4])
    assert chain == [0, 0, 1, 1]
