"""The report: one HTML file for people and one JSON file for machines, from the same facts."""

from synrisk.report.facts import Source
from synrisk.report.write import KINDS, write_report

__all__ = ["KINDS", "Source", "write_report"]
