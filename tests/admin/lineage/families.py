"""Families to read and to draw."""

from django_runstore.testing.factories import RunFactory


def line(name, *ordinals, **options):
    """Rounds of one lineage."""
    return [
        RunFactory(run_id=f"{name}-{number}", lineage_id=name, round_ordinal=number, **options)
        for number in ordinals
    ]
