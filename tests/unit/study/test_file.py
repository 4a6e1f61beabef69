"""Study files: many models, and folders that cannot be."""

import pytest

import synrisk as sr
from synrisk.models.plan import Plan
from synrisk.study.file import read_study


def study_of(folder, *formulas, top=""):
    path = folder / "study.toml"
    models = "".join(f'[[model]]\nformula = "{formula}"\n' for formula in formulas)
    path.write_text(f'{top}\n[data]\nsample = "households"\n{models}', encoding="utf-8")
    return path


def test_a_thousand_models_are_checked_together_and_more_are_refused(tmp_path, monkeypatch):
    checked, of = [], Plan.of

    def counting(regressions):
        checked.append(len(regressions))
        return of(regressions)

    monkeypatch.setattr(Plan, "of", counting)
    formulas = [f"v{k} ~ {f'v{k - 1}' if k else 1}" for k in range(1000)]
    assert len(read_study(study_of(tmp_path, *formulas)).regressions) == 1000
    assert len(checked) <= 3
    checked.clear()
    with pytest.raises(sr.SettingsError, match=r"model\[1000\].formula: 'v5' is synthesized twice"):
        read_study(study_of(tmp_path, *formulas[:-1], "v5 ~ 1"))
    assert len(checked) < 20
    with pytest.raises(
        sr.SettingsError, match=r"model: a study has at most 1,000 models; got 1,001"
    ):
        read_study(study_of(tmp_path, *formulas, "w ~ 1"))


@pytest.mark.parametrize(
    ("formulas", "where"),
    [
        (["a ~ 1", "b ~ a", "a ~ 1", "b ~ 1"], r"model\[3\]\.formula: 'a' is synthesized twice"),
        (["a ~ 1", "b ~ d", "c ~ d", "d ~ 1"], r"model\[2\]\.formula: 'b ~ d' uses d before"),
        (["a ~ b", "a ~ 1", "b ~ 1"], r"model\[2\]\.formula: 'a' is synthesized twice"),
        (["a ~ 1", "b ~ 1", "c ~ 1", "d ~ 1", "b ~ 1"], r"model\[5\]\.formula: 'b' is"),
    ],
)
def test_the_first_model_that_does_not_follow_is_named(tmp_path, formulas, where):
    with pytest.raises(sr.SettingsError, match=where):
        read_study(study_of(tmp_path, *formulas))


@pytest.mark.parametrize("name", ["a\\u0000b", "x" * 300, "circle"])
def test_folders_that_cannot_be_are_refused_where_they_stand(tmp_path, name):
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(sr.SettingsError, match="line 1, output: cannot be the folder") as caught:
        read_study(study_of(tmp_path, "Race ~ 1", top=f'output = "{name}"'))
    assert caught.value.__context__ is None


def test_datasets_have_a_limit(tmp_path):
    path = study_of(tmp_path, "Race ~ 1", top="synthesis.m = 1_001")
    with pytest.raises(
        sr.SettingsError, match=r"synthesis\.m: must be a whole number from 1 to 1,000"
    ):
        read_study(path)


def test_missing_values_by_column(tmp_path):
    path = study_of(tmp_path, "LogIncome ~ 1")
    text = path.read_text(encoding="utf-8")
    own = 'sample = "households"\nmissing = { LogIncome = "model", Race = "level" }'
    path.write_text(text.replace('sample = "households"', own), encoding="utf-8")
    assert read_study(path).missing == {"LogIncome": "model", "Race": "level"}
    path.write_text(
        text.replace('sample = "households"', own.replace("model", "modell")), encoding="utf-8"
    )
    with pytest.raises(sr.SettingsError, match=r"data\.missing\.LogIncome: .*Did you mean 'model'"):
        read_study(path)


def test_some_variables_are_evaluated(tmp_path):
    formulas = ("LogExpenditure ~ 1", "LogIncome ~ LogExpenditure")
    top = 'risk.variables = ["LogIncome"]\nrisk.joint = "drop"'
    options = read_study(study_of(tmp_path, *formulas, top=top)).risk
    assert (options["variables"], options["joint"]) == (["LogIncome"], "drop")
    other = study_of(tmp_path, *formulas, top='risk.variables = ["LogIncome", "LogIncme"]')
    with pytest.raises(
        sr.SettingsError, match=r"risk\.variables\[2\]: is not a synthesized variable.*LogIncome"
    ):
        read_study(other)


def test_a_study_file_alone_does_not_send_data_to_another_machine(tmp_path, monkeypatch):
    """What answers there gets the records and may run code here."""
    address = "tls://cluster.example.org:8786"

    def read(address):
        path = study_of(tmp_path, "Race ~ 1")
        text = path.read_text(encoding="utf-8")
        path.write_text(f'{text}[engine]\nexecutor = "{address}"\n', encoding="utf-8")
        return read_study(path).executor

    monkeypatch.delenv("SYNRISK_SCHEDULER", raising=False)
    for other in (None, "", "tls://", "tls://cluster.example.org", "1"):
        if other is not None:
            monkeypatch.setenv("SYNRISK_SCHEDULER", other)
        with pytest.raises(sr.SettingsError, match=r"engine\.executor: is on another machine"):
            read(address)
    monkeypatch.setenv("SYNRISK_SCHEDULER", address)
    assert read(address) == address
    monkeypatch.delenv("SYNRISK_SCHEDULER")
    assert read("tcp://127.0.0.1:8786") == "tcp://127.0.0.1:8786"


def test_more_processes_than_cores_of_any_machine_are_refused_where_they_stand(tmp_path):
    path = study_of(tmp_path, "Race ~ 1")
    text = path.read_text(encoding="utf-8")
    engine = '[engine]\nexecutor = "processes"\nworkers = 100000\n'
    path.write_text(text + engine, encoding="utf-8")
    with pytest.raises(sr.SettingsError, match=r"line 8, engine\.workers: .*at most 1,024"):
        read_study(path)
