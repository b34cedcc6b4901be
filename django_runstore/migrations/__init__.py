"""The schema of the run store."""
