"""What users ask about a release and hold as its answer: attribute risk, comparisons."""
