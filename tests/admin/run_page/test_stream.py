import pytest
from django.http import QueryDict

from django_runstore.admin.run_page.stream import read_stream
from django_runstore.models import JournalEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def read():
    """Seven entries, read two by two."""
    for seq in range(7):
        JournalEntry.unguarded.create(
            run_id="a",
            seq=seq,
            source_id="s",
            source_hash=b"s" * 32,
            source_seq=seq,
            emitted_at_ms=0,
            event_type="e",
            payload_json="1",
        )

    def of(query=""):
        found = read_stream(
            JournalEntry.objects.filter(run_id="a"), query=QueryDict(query), name="log", size=2
        )
        return [entry.seq for entry in found.entries], found.older, found.newer

    return of


@pytest.mark.parametrize(
    ("query", "seqs", "older", "newer"),
    [
        ("", [6, 5], "?log_before=5#log", None),
        ("log_before=5", [4, 3], "?log_before=3#log", "?log_after=4#log"),
        ("log_before=1", [0], None, "?log_after=0#log"),
        ("log_after=2", [4, 3], "?log_before=3#log", "?log_after=4#log"),
        ("log_after=4", [6, 5], "?log_before=5#log", None),
        ("log_before=0", [], None, "?#log"),
        ("log_after=6", [], None, "?#log"),
    ],
)
def test_each_page_leads_to_its_neighbours(read, query, seqs, older, newer):
    assert read(query) == (seqs, older, newer)


@pytest.mark.parametrize("value", ["x", "-1", "1e3", "9" * 17, "%00", "\u0661"])
def test_a_cursor_that_is_no_sequence_is_ignored(read, value):
    assert read(f"log_before={value}")[0] == [6, 5]


def test_the_cursors_of_other_sections_stay_where_they_are(read):
    assert read("other_before=3&log_after=2")[1] == "?other_before=3&log_before=3#log"
