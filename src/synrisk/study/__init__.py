"""A study file to a folder of results, and the command line."""
