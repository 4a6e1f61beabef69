"""How models are stored: settings as JSON, numbers as arrays; designs are frozen anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from synrisk.base.errors import FileError
from synrisk.data.archive import pack, unpack
from synrisk.fitting import Fit
from synrisk.models.families import Family, Gapped, family, is_registered
from synrisk.models.plan import Regression
from synrisk.models.posterior import Posterior, parameter_names
from synrisk.models.priors import Conjugate, prior_from_json, prior_to_json
from synrisk.synthesis.confidential import Confidential
from synrisk.synthesis.fitted_model import Model


def models_to_contents(models: Sequence[Model]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return settings and arrays of models."""
    arrays: dict[str, Any] = {}
    settings = [
        {
            "formula": model.regression.formula,
            "family": _stored(model.regression.distribution),
            "prior": None
            if model.regression.prior is None
            else prior_to_json(model.regression.prior),
            "weights": model.regression.weights,
            "rename": dict(model.rename),
            "posterior": pack(model.posterior, arrays, f"posterior_{k}"),
            "fit": pack(model.fit, arrays, f"fit_{k}", leave=(Regression,)),
        }
        for k, model in enumerate(models)
    ]
    return settings, arrays


def regressions_from_contents(settings: Sequence[Mapping[str, Any]]) -> list[Regression]:
    """Return the regressions that `models_to_contents` stored."""
    return [
        Regression(
            stored["formula"],
            _family(stored["family"]),
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
    for stored, regression in zip(settings, confidential.plan.regressions, strict=True):
        design = confidential.design(regression)
        response = confidential.schema.variables[regression.response]
        sizes = {
            "column": len(design.columns),
            "predictor": regression.distribution.n_predictors(response),
            "auxiliary": len(regression.distribution.auxiliary),
        }
        sizes["parameter"] = sizes["column"] * sizes["predictor"] + sizes["auxiliary"]
        posterior = unpack(Posterior, stored["posterior"], arrays, sizes=sizes)
        if parameter_names(design, regression.distribution, response) != posterior.names:
            raise FileError(
                "The file was written by a version of synrisk that encodes formulas "
                "differently; fit or read the draws again."
            )
        if len(posterior.sources) != sizes["parameter"]:
            raise FileError("The file holds draws of other parameters than its own.")
        given: dict[type, Any] = {Regression: regression}
        fit = None if stored["fit"] is None else unpack(Fit, stored["fit"], arrays, given, sizes)
        if fit and not isinstance(fit.priors, Conjugate) and len(fit.priors) != sizes["parameter"]:
            raise FileError("The file holds a fit with priors of other parameters than its own.")
        weights = confidential.record_weights(regression)
        models.append(Model(regression, design, posterior, weights, fit, stored["rename"]))
    return tuple(models)


def _stored(known: Family) -> str | dict[str, Any]:
    """Return the name of a family, with its options where it has any.

    Which number stands for a missing value is the schema's.
    """
    if isinstance(known, Gapped):
        known = known.inner
    if not is_registered(known):
        raise FileError(
            f"The family {known.name!r} is not one of synrisk's, so it cannot be saved."
        )
    options = asdict(known)
    return {"name": known.name, **options} if options else known.name


def _family(stored: str | Mapping[str, Any]) -> Family:
    """Return the family that `_stored` stored."""
    if isinstance(stored, str):
        return family(stored)
    options = {key: value for key, value in stored.items() if key != "name"}
    return replace(family(stored["name"]), **options)
