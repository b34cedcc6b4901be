"""Management package of the demonstration."""
