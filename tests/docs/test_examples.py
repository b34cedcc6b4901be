"""Every Python example of the documentation runs, page by page."""

from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

from django_runstore.handlers.registry import registry

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(
    path.relative_to(DOCS).as_posix()
    for path in DOCS.rglob("*.md")
    if "_build" not in path.parts and "```python" in path.read_text(encoding="utf-8")
)


@pytest.fixture
def own_registry(monkeypatch):
    """Let pages declare handlers without leaving them behind."""
    monkeypatch.setattr(registry, "_handlers", dict(registry._handlers))


@pytest.mark.django_db
@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_run_in_order(page, own_registry):
    document = Sybil(parsers=[PythonCodeBlockParser()]).parse(DOCS / page)
    examples = list(document.examples())
    assert examples
    for example in examples:
        example.evaluate()


def test_every_kind_of_page_has_examples():
    assert {"tutorial/first-run.md", "guides/own-host.md", "guides/report.md"} <= set(PAGES)
