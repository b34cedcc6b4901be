"""
The demonstration: index the Python standard library's own source.

A real job on real input that is on every machine. Each run reads the files of one
top-level package, saves a checkpoint per batch, and survives the death of whoever ran it.
"""
