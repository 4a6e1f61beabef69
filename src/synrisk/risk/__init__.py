"""From guesses to each record's numbers and their errors."""
