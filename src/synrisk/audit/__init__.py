"""What two files tell about a release, whatever made it: counts, matches and distances."""
