"""Saved files: everything comes back, and nothing but a FileError comes of a bad one."""

import hashlib
import json
import stat
import subprocess
import sys
import tracemalloc
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers.cases import gaussian_draws, people, two_gaussians
from helpers.resigned import resign
from scipy.io import netcdf_file

import synrisk as sr
from synrisk.data import netcdf as storage
from synrisk.data.netcdf import Contents


def same_risk(one, two):
    pd.testing.assert_frame_equal(one.records, two.records, check_exact=True)
    pd.testing.assert_frame_equal(one.summary(), two.summary(), check_exact=True)
    assert one.notes == two.notes
    assert one.estimator == two.estimator
    assert one.n_draws == two.n_draws
    assert repr(one) == repr(two)
    for record in one.records.index[:3]:
        left, right = one.joint(record), two.joint(record)
        assert left.identical(right)
        pd.testing.assert_frame_equal(one.ranking(record), two.ranking(record))
    xr_one, xr_two = one.to_dataset(), two.to_dataset()
    assert xr_one.identical(xr_two)


@pytest.mark.parametrize("joint", ["keep", "drop"])
@pytest.mark.parametrize("estimator", ["paper", "importance"])
@pytest.mark.parametrize("prior", ["uniform", sr.TruthFactor(3.5), "table"])
def test_a_risk_comes_back(tmp_path, joint, estimator, prior):
    synthesizer, release = two_gaussians()
    if isinstance(prior, str) and prior == "table":
        table = np.random.default_rng(0).dirichlet(np.ones(15), size=40).reshape(40, 3, 5)
        prior = np.log(table)
    risk = sr.attribute_risk(
        synthesizer, [release] * 2, guesses=[3, 5], joint=joint, estimator=estimator,
        intruder_prior=prior, n_draws=15,question="paper"
    )  # fmt: skip
    risk.save(tmp_path / "risk.nc")
    again = sr.AttributeRisk.load(tmp_path / "risk.nc")
    same_risk(risk, again)
    pd.testing.assert_frame_equal(risk.summary(by="u"), again.summary(by="u"))


def mixed_synthesizer():
    data = people()
    data["flag"] = [True, False] * 20
    data["r"] = data["r"].cat.rename_categories(["a/b", "émoji 🎲", "c"])
    data["when"] = pd.Timestamp("2020-01-01 10:00", tz="UTC")
    data["nullable"] = pd.array([1, None] * 20, dtype="Int64")
    data["weight_column"] = np.linspace(0.1, 2.0, 40)
    data.index = pd.Index([2**62 + i for i in range(40)], name="a/b id")
    rng = np.random.default_rng(0)
    levels = ("émoji 🎲", "c")
    terms = ("Intercept", "scale(x)", "flag[T.True]", "bs(z)1", "bs(z)2", "bs(z)3")
    draws = pd.DataFrame(
        rng.normal(size=(6, 12)), columns=[f"{v}:{t}" for v in levels for t in terms]
    )
    plan = sr.Regression("r ~ scale(x) + flag + bs(z)", "categorical", weights="weight_column")
    draws["weight"] = rng.uniform(size=6)
    return sr.Synthesizer.from_draws(plan, data, draws), data


def test_a_synthesizer_comes_back_with_types_labels_and_levels(tmp_path):
    synthesizer, data = mixed_synthesizer()
    synthesizer.save(tmp_path / "s.nc")
    again = sr.Synthesizer.load(tmp_path / "s.nc")
    pd.testing.assert_frame_equal(again.data, data)
    pd.testing.assert_frame_equal(again.describe(), synthesizer.describe())
    pd.testing.assert_frame_equal(again.draws("r"), synthesizer.draws("r"))
    assert again.plan == synthesizer.plan
    assert again.schema.variables == synthesizer.schema.variables
    release = data[["x", "z", "flag", "r"]].iloc[::-1]
    one, two = (sr.attribute_risk(s, release, question="paper") for s in (synthesizer, again))
    same_risk(one, two)
    risk_file = tmp_path / "risk.nc"
    one.save(risk_file)
    same_risk(one, sr.AttributeRisk.load(risk_file))


def test_chains_come_back(tmp_path):
    data = people()
    draws = gaussian_draws(22, ("Intercept", "x"), (10.0, 1.0))
    draws[".chain"] = [1] * 11 + [2] * 11
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("b ~ x"), data, draws)
    synthesizer.save(tmp_path / "s.nc")
    again = sr.Synthesizer.load(tmp_path / "s.nc")
    assert list(again.models[0].posterior.chain) == [0] * 11 + [1] * 11
    risk = sr.attribute_risk(synthesizer, data[["x", "b"]], question="paper")
    units = risk._evaluation.estimates[0].units
    risk.save(tmp_path / "risk.nc")
    stored = sr.AttributeRisk.load(tmp_path / "risk.nc")._evaluation.estimates[0].units
    assert stored.size == units.size
    np.testing.assert_array_equal(stored.layout, units.layout)


def test_ragged_guesses_and_dropped_records_come_back(tmp_path):
    data = people()
    data.loc[[3, 8], "x"] = np.nan
    draws = gaussian_draws(5, ("Intercept", "x"), (10.0, 1.0))
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("b ~ x"), data, draws, missing="drop")
    truth = synthesizer.data["b"].to_numpy()
    table = np.column_stack([truth, truth + 1, truth + 2])
    table[4, 2] = np.nan
    release = people()[["x"]].assign(b=10.0)
    risk = sr.attribute_risk(synthesizer, release, guesses=sr.Values(table), question="paper")
    risk.save(tmp_path / "risk.nc")
    again = sr.AttributeRisk.load(tmp_path / "risk.nc")
    same_risk(risk, again)
    assert again._evaluation.synthesizer.n_dropped == 2


def test_files_are_owner_only_and_replace_the_old_one_whole(tmp_path, monkeypatch):
    synthesizer, _ = two_gaussians()
    path = tmp_path / "s.nc"
    synthesizer.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(storage, "_digest", interrupted)
    with pytest.raises(KeyboardInterrupt):
        synthesizer.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["s.nc"]


def test_a_saved_file_is_netcdf(tmp_path):
    synthesizer, _ = two_gaussians()
    synthesizer.save(tmp_path / "s.nc")
    with xr.open_dataset(tmp_path / "s.nc", engine="scipy") as file:
        assert "synrisk" in file.attrs["title"]
        assert set(file.variables) >= {"meta_0", "table_0", "array_posterior_0_coefficients_0"}


def fitted_synthesizer():
    data = people(60)
    data["w"] = np.linspace(0.5, 2.0, 60)
    plan = [
        sr.Regression("log(b) ~ x", prior="conjugate"),
        sr.Regression("k ~ log(b) + u", "poisson", weights="w", prior={"log(b)": sr.Normal(0, 1)}),
        sr.Regression("r ~ z", "categorical"),
    ]
    return sr.fit(plan, data, seed=3, n_draws=60)


def test_a_fit_comes_back_with_all_that_a_refit_needs(tmp_path):
    synthesizer = fitted_synthesizer()
    synthesizer.save(tmp_path / "s.nc")
    again = sr.Synthesizer.load(tmp_path / "s.nc")
    assert again.plan == synthesizer.plan
    pd.testing.assert_frame_equal(again.describe(), synthesizer.describe(), check_exact=True)
    one, two = (s.synthesize(2, seed=1) for s in (synthesizer, again))
    for left, right in zip(one, two, strict=True):
        pd.testing.assert_frame_equal(left, right, check_exact=True)
    for name, refit in synthesizer.refit(one[0]).items():
        other = again.refit(one[0])[name]
        np.testing.assert_array_equal(refit.posterior.coefficients, other.posterior.coefficients)
        assert refit.ess == other.ess


def test_a_fit_lacking_a_part_is_a_file_error(tmp_path):
    path = tmp_path / "s.nc"
    fitted_synthesizer().save(path)
    contents = storage.load(path, "a synthesizer")
    for missing in (
        "fit_0_numbers_z",
        "fit_1_numbers_u",
        "fit_2_mode",
        "fit_0_frozen_standardisation_spread",
        "fit_1_frozen_standardisation_centre",
    ):
        arrays = {k: v for k, v in contents.arrays.items() if k != missing}
        storage.save(path, Contents(contents.kind, contents.meta, arrays, contents.table))
        with pytest.raises(sr.FileError, match="lacks"):
            sr.Synthesizer.load(path)


def test_two_hundred_mutated_files_give_a_file_error(tmp_path):
    synthesizer, release = two_gaussians(n_draws=4)
    path = tmp_path / "risk.nc"
    sr.attribute_risk(synthesizer, release, guesses=3, question="paper").save(path)
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    for number in range(200):
        bad = bytearray(good)
        kind = number % 4
        place = int(rng.integers(len(good)))
        if kind == 0:
            bad[place] ^= int(rng.integers(1, 256))
        elif kind == 1:
            del bad[place:]
        elif kind == 2:
            bad[place : place + 50] = rng.bytes(50)
        else:
            bad = bad + rng.bytes(int(rng.integers(1, 100)))
        path.write_bytes(bytes(bad))
        with pytest.raises(sr.SynriskError) as caught:
            sr.AttributeRisk.load(path)
        assert caught.value.__context__ is None


def test_a_part_that_is_not_there_is_a_file_error(tmp_path):
    synthesizer, release = two_gaussians(n_draws=4)
    path = tmp_path / "risk.nc"
    sr.attribute_risk(synthesizer, release, guesses=3, question="paper").save(path)
    contents = storage.load(path, "an attribute risk")
    parts = (
        "positions",
        "grid_0_values",
        "posterior_1_coefficients",
        "estimate_0_log_g",
        "result_rank",
    )
    for missing in parts:
        arrays = {k: v for k, v in contents.arrays.items() if k != missing}
        assert len(arrays) < len(contents.arrays)
        storage.save(path, Contents(contents.kind, contents.meta, arrays, contents.table))
        with pytest.raises(sr.FileError, match="lacks"):
            sr.AttributeRisk.load(path)


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 5000, b"\x89HDF\r\n\x1a\n" + b"0" * 999])
def test_foreign_files(tmp_path, content):
    path = tmp_path / "f.nc"
    path.write_bytes(content)
    with pytest.raises(sr.FileError, match="not written by synrisk"):
        sr.Synthesizer.load(path)


def test_wrong_kinds_versions_and_places(tmp_path):
    synthesizer, _ = two_gaussians()
    path = tmp_path / "s.nc"
    synthesizer.save(path)
    with pytest.raises(sr.FileError, match="does not hold an attribute risk"):
        sr.AttributeRisk.load(path)
    with pytest.raises(sr.FileError, match="is there such a file"):
        sr.AttributeRisk.load(tmp_path / "none.nc")
    with pytest.raises(sr.FileError, match="no folder"):
        synthesizer.save(tmp_path / "none" / "s.nc")
    contents = Contents("a synthesizer", {"format": 99}, {}, pd.DataFrame({"a": [1]}))
    storage.save(path, contents)
    with pytest.raises(sr.FileError, match="has format 99"):
        sr.Synthesizer.load(path)


def test_what_cannot_be_saved_is_named(tmp_path):
    data = people().assign(odd=[1, "a"] * 20)
    draws = gaussian_draws(5, ("Intercept", "x"), (10.0, 1.0))
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("b ~ x"), data, draws)
    with pytest.raises(sr.FileError, match=r"1 column holds values of a kind .*: odd"):
        synthesizer.save(tmp_path / "s.nc")


@pytest.mark.parametrize("place", ["folder", "", None, b"x.nc", "a\0b", "n" * 300, "none/x.nc"])
def test_places_that_cannot_be_written(tmp_path, place, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    synthesizer, _ = two_gaussians()
    with pytest.raises(sr.FileError):
        synthesizer.save(place)
    with pytest.raises(sr.FileError):
        sr.Synthesizer.load(place)


@pytest.mark.parametrize(
    "change",
    [
        {"odd": pd.cut(np.linspace(0, 90, 40), [-1, 30, 60, 90])},
        {"odd": [{1}] * 40},
    ],
    ids=["intervals", "sets"],
)
def test_what_would_not_come_back_is_refused_when_it_is_saved(tmp_path, change):
    draws = gaussian_draws(5, ("Intercept", "x"), (10.0, 1.0))
    data = people().assign(**change)
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("b ~ x"), data, draws)
    with pytest.raises(sr.FileError):
        synthesizer.save(tmp_path / "s.nc")
    assert not list(tmp_path.iterdir())


def test_labels_that_would_not_come_back_are_refused(tmp_path):
    draws = gaussian_draws(5, ("Intercept", "x"), (10.0, 1.0))
    data = people()
    data.index = pd.Index([(i, "a") for i in range(40)], tupleize_cols=False)
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("b ~ x"), data, draws)
    with pytest.raises(sr.FileError, match="labels"):
        synthesizer.save(tmp_path / "s.nc")


def test_a_link_keeps_pointing_to_the_file(tmp_path):
    synthesizer, _ = two_gaussians()
    target, link = tmp_path / "real.nc", tmp_path / "link.nc"
    synthesizer.save(target)
    link.symlink_to(target)
    synthesizer.save(link)
    assert link.is_symlink()
    sr.Synthesizer.load(link)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("models", 0, "posterior", "chain"), []),
        (("models", 0, "posterior", "coefficients"), {}),
        (("models", 0, "fit"), 7),
        (("risk", "result", "rank"), [1]),
        (("risk", "estimates"), {}),
        (("risk", "estimates", 0, "is"), "Nothing"),
        (("risk", "prior", "kind"), "zzz"),
        (("risk", "grids"), None),
        (("risk", "notes"), [1]),
        (("risk", "question"), ""),
        (("risk", "checks"), 0),
        (("risk", "n_draws"), {}),
        (("risk", "estimator"), {"y": "exact"}),
        (("risk", "question", "tolerances"), {}),
    ],
)
def test_a_file_that_was_changed_by_somebody_who_signs_it_anew_is_a_file_error(
    tmp_path, place, value
):
    synthesizer, release = two_gaussians(n_draws=4)
    path = tmp_path / "risk.nc"
    sr.attribute_risk(synthesizer, release, guesses=3, question="paper").save(path)
    contents = storage.load(path, "an attribute risk")
    meta = json.loads(json.dumps(contents.meta))
    part = meta
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    storage.save(path, Contents(contents.kind, meta, contents.arrays, contents.table))
    with pytest.raises(sr.FileError) as caught:
        sr.AttributeRisk.load(path)
    assert caught.value.__context__ is None


@pytest.mark.filterwarnings("ignore")
def test_what_somebody_changed_and_signed_anew_loads_or_is_refused(tmp_path):
    """Compiled code takes arrays as they are: those of other shapes must not reach it."""
    data = people(30)[["x", "b", "k", "r"]]
    plan = [
        sr.Regression("b ~ x"),
        sr.Regression("k ~ x", "poisson"),
        sr.Regression("r ~ x", "categorical"),
    ]
    fitted = sr.fit(plan, data, n_draws=30, seed=1)
    sr.attribute_risk(fitted, fitted.synthesize(1, seed=2)).save(tmp_path / "risk.nc")
    good, path, outcomes = (tmp_path / "risk.nc").read_bytes(), tmp_path / "other.nc", set()
    for k in range(60):
        path.write_bytes(good)
        if not resign(path, "an attribute risk", np.random.default_rng([5, k])):
            continue
        try:
            risk = sr.AttributeRisk.load(path)
            first = risk.records.index[0]
            risk.summary(), risk.verdict(further=0), risk.joint(first), risk.ranking(first)
            risk.synthesizer.describe()
            outcomes.add("loaded")
        except sr.SynriskError:
            outcomes.add("refused")
    assert outcomes == {"loaded", "refused"}


def test_records_of_one_label_are_a_file_error(tmp_path):
    synthesizer, release = two_gaussians(n_draws=4)
    path = tmp_path / "risk.nc"
    sr.attribute_risk(synthesizer, release, guesses=3, question="paper").save(path)
    contents = storage.load(path, "an attribute risk")
    twice = contents.table.set_axis([0] * len(contents.table))
    repeated = {**contents.arrays, "positions": contents.arrays["positions"] * 0}
    for arrays, table in ((contents.arrays, twice), (repeated, contents.table)):
        storage.save(path, Contents(contents.kind, contents.meta, arrays, table))
        with pytest.raises(sr.FileError, match=r"one label|other records"):
            sr.AttributeRisk.load(path)


@pytest.mark.parametrize(("of", "key"), [("fit", "priors"), ("posterior", "sources")])
def test_a_fit_with_priors_or_draws_of_other_parameters_is_a_file_error(tmp_path, of, key):
    path = tmp_path / "s.nc"
    fitted_synthesizer().save(path)
    contents = storage.load(path, "a synthesizer")
    meta = json.loads(json.dumps(contents.meta))
    part = meta["models"][1][of]
    del part.get("frozen", part)[key][-1]
    storage.save(path, Contents(contents.kind, meta, contents.arrays, contents.table))
    with pytest.raises(sr.FileError, match="of other parameters"):
        sr.Synthesizer.load(path)


def test_text_that_is_no_text_is_a_file_error(tmp_path):
    synthesizer, _ = mixed_synthesizer()
    path = tmp_path / "s.nc"
    synthesizer.save(path)
    image = path.read_bytes()[: -len(storage._MARK) - storage._DIGEST]
    image = image.replace("émoji".encode(), b"\xff\xfemoji")
    path.write_bytes(image + storage._MARK + storage._digest(image))
    with pytest.raises(sr.FileError, match="cannot be read") as caught:
        sr.Synthesizer.load(path)
    assert caught.value.__context__ is None


def test_arrays_that_overlap_do_not_fill_the_memory(tmp_path):
    """A thousand variables that all say to be the same megabyte."""
    synthesizer, _ = two_gaussians()
    path = tmp_path / "s.nc"
    synthesizer.save(path)
    made = BytesIO()
    file = netcdf_file(made, "w", version=2)
    file.createDimension("n", 1 << 20)
    for k in range(1000):
        file.createDimension(f"m{k}", 1)
        file.createVariable(f"v{k}", "b", ("n" if k == 0 else f"m{k}",))[:] = 1
    file.flush()
    image = made.getvalue()
    header = image[: -(1 << 20)]
    dimension = (0).to_bytes(4, "big")  # every variable of the first dimension
    for k in range(1, 1000):
        at = header.index(f"v{k}".encode().ljust(-(-len(f"v{k}") // 4) * 4, b"\0"))
        at += -(-len(f"v{k}") // 4) * 4 + 4
        image = image[:at] + dimension + image[at + 4 :]
    path.write_bytes(image + b"synrisk\0" + hashlib.blake2b(image, digest_size=32).digest())
    tracemalloc.start()
    with pytest.raises(sr.FileError, match="cannot be read"):
        sr.Synthesizer.load(path)
    assert tracemalloc.get_traced_memory()[1] < 30 * (1 << 20)
    tracemalloc.stop()


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of files there")
def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path):
    """A file may not grow beyond a limit, as on a full disk, wherever the writing is."""
    code = """
import resource, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from helpers.cases import two_gaussians
import synrisk as sr
synthesizer, release = two_gaussians()
risk = sr.attribute_risk(synthesizer, release, question="paper")
folder = Path(sys.argv[1])
risk.save(folder / "whole.nc")
size = (folder / "whole.nc").stat().st_size
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for k in range(10):
    resource.setrlimit(resource.RLIMIT_FSIZE, (k * size // 10, resource.RLIM_INFINITY))
    try:
        risk.save(folder / "whole.nc")
    except sr.FileError as error:
        assert "cannot be written" in str(error)
    else:
        raise AssertionError(k)
    assert [path.name for path in folder.iterdir()] == ["whole.nc"]
    sr.AttributeRisk.load(folder / "whole.nc")
print("ok")
"""
    tests = str(Path(__file__).parent.parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), tests],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.stdout.strip() == "ok", done.stderr
