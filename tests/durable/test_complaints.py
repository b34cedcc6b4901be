import pickle

from django_runstore.durable import JsonComplaint


def test_a_complaint_is_a_value_error_that_reads_as_its_text():
    complaint = JsonComplaint("contains a cycle", "$.items[3]")

    assert isinstance(complaint, ValueError)
    assert str(complaint) == "contains a cycle"


def test_a_complaint_keeps_the_place_apart_from_the_text():
    complaint = JsonComplaint("contains a cycle", "$.items[3]")

    assert (complaint.complaint, complaint.path) == ("contains a cycle", "$.items[3]")


def test_a_complaint_survives_a_process_boundary():
    copy = pickle.loads(pickle.dumps(JsonComplaint("contains a cycle", "$[1]")))  # noqa: S301 - our own bytes

    assert (str(copy), copy.path) == ("contains a cycle", "$[1]")
