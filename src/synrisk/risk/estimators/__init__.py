"""How each model's likelihood of the release is estimated, and which way is chosen."""
