"""What a user specifies: formulas, designs, families, priors, the plan; draws as data."""
