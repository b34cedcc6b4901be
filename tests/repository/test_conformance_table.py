"""Every numbered behaviour has a test, and the page that says which is not stale."""

import pytest

from devtools import conformance_table
from devtools.conformance_table import MarkedTest, claims, find_tests, render

TESTS = find_tests()


@pytest.mark.parametrize("item", claims())
def test_every_behaviour_has_a_test(item):
    assert item in TESTS


def test_tests_are_marked_only_with_what_there_is():
    assert sorted(TESTS.keys() - claims().keys()) == []


def test_the_page_is_what_the_tests_say():
    written = conformance_table.PAGE.read_text(encoding="utf-8")
    assert written == render(TESTS), "run python -m devtools.conformance_table"


def test_the_notes_are_numbered_without_doubt():
    numbers = [item for _, notes in conformance_table.sections() for item in notes]
    assert len(numbers) == len(set(numbers))
    plain = [int(item) for item in numbers if item.isdecimal()]
    assert plain == sorted(plain)
    assert plain[-1] == 212


MARKED = """
import pytest

pytestmark = [pytest.mark.django_db, pytest.mark.conformance("D9")]

@pytest.mark.conformance(1, 2)
@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.conformance(3))])
def test_marked(n): ...

def test_plain(): ...

@pytest.mark.conformance(4)
class TestInside:
    async def test_method(self): ...

@pytest.mark.conformance(5)
def helper(): ...
"""

SUITE = """
class Suite:
    @covers(6)
    def test_of_a_suite(self): ...
"""


def test_markers_are_found_wherever_they_may_stand(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_some.py").write_text(MARKED)
    suites = tmp_path / conformance_table.SUITES
    suites.mkdir(parents=True)
    (suites / "suite.py").write_text(SUITE)

    marked, plain, method = (
        MarkedTest("tests/test_some.py", name)
        for name in ("test_marked", "test_plain", "test_method")
    )
    of_a_suite = MarkedTest(f"{conformance_table.SUITES}/suite.py", "test_of_a_suite")
    assert find_tests(tmp_path) == {
        "D9": (marked, method, plain),
        "1": (marked,),
        "2": (marked,),
        "3": (marked,),
        "4": (method,),
        "6": (of_a_suite,),
    }


def test_a_behaviour_without_a_test_stands_out_on_the_page():
    page = render({item: found for item, found in TESTS.items() if item != "7"})
    row = next(line for line in page.splitlines() if line.startswith("| 7 |"))
    assert row.endswith("| **none** |")
