"""How models are stored: settings as JSON, numbers as arrays; designs are frozen anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from synrisk.base.errors import FileError
from synrisk.base.notes import notes_from_json
from synrisk.fitting import CommonNumbers, Fit, Scales, Standardisation
from synrisk.fitting.identifiability import separation_note
from synrisk.models.families import FAMILIES, Family
from synrisk.models.plan import Regression
from synrisk.models.posterior import Posterior, parameter_names
from synrisk.models.priors import prior_from_json, prior_to_json
from synrisk.synthesis.confidential import Confidential
from synrisk.synthesis.fitted_model import Model


def models_to_contents(models: Sequence[Model]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return settings and arrays of models."""
    arrays: dict[str, Any] = {}
    settings = []
    for k, model in enumerate(models):
        regression, posterior, fit = model.regression, model.posterior, model.fit
        settings.append(
            {
                "formula": regression.formula,
                "family": _registered(regression.distribution),
                "prior": None if regression.prior is None else prior_to_json(regression.prior),
                "weights": regression.weights,
                "names": list(posterior.names),
                "sources": list(posterior.sources),
                "fit": None if fit is None else _fit_to_json(fit),
                "rename": dict(model.rename),
                "left_out": list(posterior.left_out),
            }
        )
        arrays[f"coefficients_{k}"] = posterior.coefficients
        arrays[f"auxiliary_{k}"] = posterior.auxiliary
        arrays[f"log_weights_{k}"] = posterior.log_weights
        if posterior.chain is not None:
            arrays[f"chain_{k}"] = posterior.chain
        if fit is not None:
            arrays[f"fit_z_{k}"], arrays[f"fit_u_{k}"] = fit.numbers.z, fit.numbers.u
            arrays[f"fit_mode_{k}"], arrays[f"fit_inflation_{k}"] = fit.mode, fit.inflation
            arrays[f"fit_centre_{k}"] = fit.standardisation.centre
            arrays[f"fit_spread_{k}"] = fit.standardisation.spread
    return settings, arrays


def regressions_from_contents(settings: Sequence[Mapping[str, Any]]) -> list[Regression]:
    """Return the regressions that `models_to_contents` stored."""
    return [
        Regression(
            stored["formula"],
            stored["family"],
            prior=None if stored["prior"] is None else prior_from_json(stored["prior"]),
            weights=stored["weights"],
        )
        for stored in settings
    ]


def models_from_contents(
    settings: Sequence[Mapping[str, Any]], arrays: Mapping[str, Any], confidential: Confidential
) -> tuple[Model, ...]:
    """Return the models that `models_to_contents` stored, on their confidential data."""
    models = []
    for k, regression in enumerate(confidential.plan.regressions):
        design = confidential.design(regression)
        response = confidential.schema.variables[regression.response]
        names = parameter_names(design, regression.distribution, response)
        if list(names) != settings[k]["names"]:
            raise FileError(
                "The file was written by a version of synrisk that encodes formulas "
                "differently; fit or read the draws again."
            )
        posterior = Posterior(
            arrays[f"coefficients_{k}"],
            arrays[f"auxiliary_{k}"],
            arrays[f"log_weights_{k}"],
            names,
            tuple(settings[k]["sources"]),
            arrays.get(f"chain_{k}"),
            tuple(settings[k].get("left_out", ())),
        )
        weights = confidential.record_weights(regression)
        stored = settings[k]["fit"]
        fit = _fit_from_json(stored, arrays, k, regression.response) if stored else None
        rename = settings[k].get("rename", {})
        models.append(Model(regression, design, posterior, weights, fit, rename))
    return tuple(models)


def _fit_to_json(fit: Fit) -> dict[str, Any]:
    return {
        "engine": fit.engine,
        "priors": prior_to_json(fit.priors),
        "centre": fit.scales.centre,
        "spread": fit.scales.spread,
        "intercept": fit.standardisation.intercept,
        "khat": float(fit.khat).hex(),
        "ess": fit.ess,
        "separated": list(fit.separated),
        "notes": [note.to_json() for note in fit.notes],
    }


def _fit_from_json(
    stored: Mapping[str, Any], arrays: Mapping[str, Any], k: int, response: str
) -> Fit:
    standardisation = Standardisation(
        arrays[f"fit_centre_{k}"], arrays[f"fit_spread_{k}"], stored["intercept"]
    )
    priors: Any = prior_from_json(stored["priors"])
    # Texts are of earlier versions, whose fits had no other notes.
    texts = [one for one in stored["notes"] if isinstance(one, str)]
    separation = [separation_note(response, text) for text in texts]
    return Fit(
        engine=stored["engine"],
        priors=priors,
        scales=Scales(stored["centre"], stored["spread"], standardisation.spread),
        standardisation=standardisation,
        numbers=CommonNumbers(arrays[f"fit_z_{k}"], arrays[f"fit_u_{k}"]),
        mode=arrays[f"fit_mode_{k}"],
        khat=float.fromhex(stored["khat"]),
        ess=stored["ess"],
        inflation=np.asarray(arrays[f"fit_inflation_{k}"]),
        separated=tuple(stored["separated"]),
        notes=notes_from_json(stored["notes"], separation),
    )


def _registered(family: Family) -> str:
    if family not in FAMILIES:
        raise FileError(
            f"The family {family.name!r} is not one of synrisk's, so it cannot be saved."
        )
    return family.name
