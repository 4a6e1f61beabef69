"""Posterior draws that others made: tables, objects of ArviZ, models of Bambi."""
