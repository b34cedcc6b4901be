import pytest

from django_runstore.models import SupervisorProcess


@pytest.mark.parametrize(
    ("text", "queues"), [("null", None), ('["a","b"]', ["a", "b"]), ("[]", []), ('"a"', None)]
)
def test_a_supervisor_serves_its_queues_or_all(text, queues):
    assert SupervisorProcess(queues_json=text).queues == queues
