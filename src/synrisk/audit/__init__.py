"""Audit: what two files alone tell, the confidential one and the release, whatever made it."""
