"""Commands of the test project."""
