"""The handler: one run reads one share of the files and saves after every batch."""

from collections import Counter
from pathlib import Path
from typing import Any, Final

from django_runstore import handler
from django_runstore.handlers import RunContext
from testproject.corpus.counting import LARGEST, count_source
from testproject.corpus.reads import note_read

BATCH: Final = 25


@handler("corpus.index", queue="corpus")
def index(run: RunContext) -> dict[str, Any]:
    """Count the files of ``run.state["files"]``, from where the last owner left off."""
    state = run.state
    root = Path(state["root"])
    files = state["files"]
    while state["done"] < len(files):
        for name in files[state["done"] : state["done"] + BATCH]:
            note_read(Path(state["reads"]), run.run_id, run.fence, name)
            add_file(state, name, (root / name).read_bytes())
        # The checkpoint: what a new owner starts from if this process dies right after it.
        run.save(state)
        run.progress(state["done"] / len(files), f"{state['done']} of {len(files)} files")
    return {name: state[name] for name in ("done", "lines", "tokens", "functions", "unparsed")}


def new_state(root: Path, files: tuple[str, ...], reads: Path) -> dict[str, Any]:
    """Make the state a run begins with."""
    return {
        "root": str(root),
        "files": list(files),
        "reads": str(reads),
        "done": 0,
        "lines": 0,
        "tokens": {},
        "functions": [],
        "unparsed": [],
    }


def add_file(state: dict[str, Any], name: str, source: bytes) -> None:
    """Add one file's counts to the state."""
    count = count_source(name, source)
    state["done"] += 1
    state["lines"] += count.lines
    state["tokens"] = dict(Counter(state["tokens"]) + Counter(count.tokens))
    merged = [*map(tuple, state["functions"]), *count.functions]
    state["functions"] = sorted(merged, reverse=True)[:LARGEST]
    if count.unparsed:
        state["unparsed"].append(name)
