"""One module per command, which parses, calls and prints."""
