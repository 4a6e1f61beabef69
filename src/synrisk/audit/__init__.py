"""What two files tell about a release, whatever made it: what is learnt, copies, counts."""
