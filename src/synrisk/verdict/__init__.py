"""Limits, and whether a release keeps them."""
