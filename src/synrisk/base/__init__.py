"""How work runs and fails: errors, messages, chunks, seeds, workers, progress, array types."""
