import json

import pytest

from django_runstore.admin.lineage import reading
from django_runstore.admin.lineage.exports import as_dot, as_json, as_mermaid
from django_runstore.admin.lineage.reading import family_of
from django_runstore.models import Run
from django_runstore.testing.factories import RunFactory
from tests.admin.lineage.families import line
from tests.admin.pages import ODD_IDS

pytestmark = pytest.mark.django_db

HOSTILE = 'a"];\nclick n0 "javascript:x" <b> \\ `#quot;` %% \u202e\t\U0001f680'


def family(run_id):
    return family_of(Run.objects.get(pk=run_id), Run.objects.all())


def test_json_holds_runs_and_lines_exactly():
    line("line", 0)
    RunFactory(run_id=HOSTILE, parent_run_id="line-0", handler="h", queue="q")
    value = json.loads(as_json(family("line-0")))
    assert (value["run_id"], value["lineage_id"], value["is_complete"]) == ("line-0", "line", True)
    assert [run["run_id"] for run in value["runs"]] == ["line-0", HOSTILE]
    assert value["edges"] == [{"from": "line-0", "to": HOSTILE, "kind": "parent"}]
    child = value["runs"][1]
    assert (child["kinship"], child["generation"], child["status"]) == ("child", 1, "pending")
    assert (child["handler"], child["queue"]) == ("h", "q")


def test_mermaid_draws_nodes_and_both_kinds_of_lines():
    line("line", 0, 1)
    RunFactory(run_id="child", parent_run_id="line-0")
    assert as_mermaid(family("line-0")) == (
        "flowchart LR\n"
        '  n0["line-0 #40;round 0#44; pending#41;"]\n'
        '  n1["line-1 #40;round 1#44; pending#41;"]\n'
        '  n2["child #40;child#44; pending#41;"]\n'
        "  n0 --> n2\n"
        "  n0 -.-> n1\n"
    )


def test_dot_draws_nodes_and_both_kinds_of_lines():
    line("line", 0, 1)
    RunFactory(run_id="child", parent_run_id="line-0")
    assert as_dot(family("line-0")) == (
        "digraph lineage {\n"
        '  graph [rankdir="LR"];\n'
        '  node [shape="box"];\n'
        '  n0 [label="line-0 (round 0, pending)"];\n'
        '  n1 [label="line-1 (round 1, pending)"];\n'
        '  n2 [label="child (child, pending)"];\n'
        "  n0 -> n2;\n"
        '  n0 -> n1 [style="dashed"];\n'
        "}\n"
    )


@pytest.mark.parametrize("run_id", [HOSTILE, *ODD_IDS])
def test_no_id_breaks_out_of_its_label_in_mermaid(run_id):
    RunFactory(run_id=run_id)
    text = as_mermaid(family(run_id))
    first, label, *rest = text.splitlines()
    assert (first, rest) == ("flowchart LR", [])
    inner = label.removeprefix('  n0["').removesuffix('"]')
    assert not set(inner) & set('"[]()<>{}\\`%\t\n\r')
    assert inner.isascii()


@pytest.mark.parametrize("run_id", [HOSTILE, *ODD_IDS])
def test_no_id_breaks_out_of_its_label_in_dot(run_id):
    RunFactory(run_id=run_id)
    lines = as_dot(family(run_id)).splitlines()
    assert len(lines) == 5
    inner = lines[3].removeprefix('  n0 [label="').removesuffix('"];')
    # Every quote and every backslash is escaped: taken out in pairs, none is left.
    assert '"' not in inner.replace("\\\\", "").replace('\\"', "")
    assert "\\" not in inner.replace("\\\\", "").replace('\\"', "")
    assert "\u202e" not in inner


def test_no_format_holds_any_state():
    run = RunFactory(run_id="a", completed=True, state_json='"hunter2"', result_json='"hunter3"')
    assert not any("hunter" in write(family(run.pk)) for write in (as_json, as_mermaid, as_dot))


def test_what_is_not_complete_says_so(monkeypatch):
    monkeypatch.setattr(reading, "MOST_ROUNDS", 1)
    line("line", 0, 1)
    assert json.loads(as_json(family("line-1")))["is_complete"] is False
    assert "not complete" in as_mermaid(family("line-1"))
    assert "not complete" in as_dot(family("line-1"))
