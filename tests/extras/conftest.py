"""These tests need Bambi and nutpie, which have an environment of their own: make test-extras."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("bambi") and find_spec("nutpie") else ["test_*.py"]
