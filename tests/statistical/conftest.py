"""What the statistical tests share."""

import pytest


@pytest.fixture
def numbers_alone(monkeypatch):
    """Leave out the checks of releases, which take longer than the numbers of few records."""
    monkeypatch.setattr("synrisk.assessment.attribute_risk.check_release", lambda *_: None)
