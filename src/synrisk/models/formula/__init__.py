"""The formula language: its parser, the tree that it yields, transformed responses."""
