"""Arithmetic on arrays, without labels: likelihoods, elimination, summaries, compiled kernels."""
