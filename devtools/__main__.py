"""Read the command line of ``dev.py``."""

import argparse
import os
import subprocess
import sys

from devtools.commands import (
    run_chaos,
    run_checks,
    run_demo,
    run_server,
    run_tests,
    take_pictures,
)
from devtools.environment import chosen_environment


def parser() -> argparse.ArgumentParser:
    """Describe every command and option."""
    # No abbreviations: what is not known here goes to pytest as it is.
    top = argparse.ArgumentParser(prog="dev.py", allow_abbrev=False)
    common = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    common.add_argument(
        "--python",
        default=os.environ.get("RUNSTORE_PYTHON", ""),
        help="a version such as 3.11, or a path; the newest otherwise",
    )
    common.add_argument(
        "--django",
        default=os.environ.get("RUNSTORE_DJANGO", ""),
        help="a release series such as 5.2; the newest for the Python otherwise",
    )
    commands = top.add_subparsers(required=True, metavar="command")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, parents=[common], allow_abbrev=False)

    demo = add("demo", "index the standard library, kill a supervisor, and see the runs survive")
    demo.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    demo.set_defaults(run=run_demo)

    test = add("test", "run the tests on SQLite and PostgreSQL; other arguments go to pytest")
    test.add_argument("--leg", choices=["all", "sqlite", "postgres"], default="all")
    test.add_argument("--no-coverage", dest="coverage", action="store_false")
    test.set_defaults(run=run_tests)

    check = add("check", "lint, format, types, system checks, migrations, docs")
    check.set_defaults(run=run_checks)

    chaos = add("chaos", "disturb running supervisors for a while, and check every run afterwards")
    chaos.add_argument("--minutes", type=float, default=5)
    chaos.add_argument("--database", choices=["sqlite", "postgres"], default="postgres")
    chaos.set_defaults(run=run_chaos)

    pictures = add("screenshots", "take the pictures of the guide to the admin anew")
    pictures.set_defaults(run=take_pictures)
    serve = add("serve", "serve the admin on the demo's database, with a throw-away login")
    serve.add_argument("--port", type=int, default=0, help="the first free one from 8000 on")
    serve.set_defaults(run=run_server)
    return top


def main(arguments: list[str]) -> int:
    """Run one command and return its exit status."""
    top = parser()
    options, rest = top.parse_known_args(arguments)
    if rest and options.run is run_checks:
        top.error(f"check takes no {rest[0]}")
    try:
        return int(options.run(options, chosen_environment(options.python, options.django), rest))
    except subprocess.CalledProcessError as error:
        # The program that failed has said why.
        print(f"dev.py: {error.cmd[0]} exited with {error.returncode}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
