"""
How this package talks to the database.

Lock order, the same for every write of the package: first SQLite's write lock
(``boundary``), then run rows in ascending ``run_id`` - or, for a run that has none, its
streams (``journal_statements.lock_stream``) - then journal rows of a run whose row is locked.
Code that locks several runs either sorts the ids or skips locked rows.
In a user's transaction the run row is locked last, just before commit.
"""
