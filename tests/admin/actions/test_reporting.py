from django_runstore.admin.actions.contract import Answer
from django_runstore.admin.actions.reporting import reports_of


def test_runs_with_the_same_answer_share_a_message_and_what_was_done_comes_first():
    answers = [
        Answer("a", "Ended before", is_done=False),
        Answer("b", "Asked to stop", is_done=True),
        Answer("c", "Ended before", is_done=False, detail="1970"),
    ]
    assert [str(report) for report in reports_of(answers)] == [
        "Asked to stop: b",
        "Ended before: a, c (1970)",
    ]


def test_many_runs_are_named_up_to_a_number():
    answers = [Answer(f"run-{number}", "Asked to stop", is_done=True) for number in range(25)]
    (report,) = reports_of(answers)
    assert str(report).endswith("run-19 and 5 more")


def test_a_name_that_would_turn_a_line_around_is_spelled_out():
    (report,) = reports_of([Answer("\u202ea", "Asked to stop", is_done=True)])
    assert str(report) == r"Asked to stop: \u202ea"
