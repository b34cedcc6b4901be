"""The German catalogue says everything, and what is installed is what was written."""

import ast
import gettext
import re
import shutil
import subprocess
import sys
from pathlib import Path

import django
import pytest

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = ROOT / "django_runstore" / "locale" / "de" / "LC_MESSAGES" / "django.po"

# A key, and the strings behind it.
FIELD = re.compile(
    r'^(msgid_plural|msgid|msgstr(?:\[\d\])?) ((?:"(?:[^"\\]|\\.)*"\n)+)', re.MULTILINE
)


def messages(path):
    """Every message of a catalogue, by its id, as the list of its translations."""
    found, current = {}, []
    for key, quoted in FIELD.findall(path.read_text()):
        text = "".join(ast.literal_eval(line) for line in quoted.splitlines())
        if key == "msgid":
            current = found.setdefault(text, [])
        elif key.startswith("msgstr"):
            current.append(text)
    return {message: texts for message, texts in found.items() if message}


def test_every_message_is_translated():
    catalogue = messages(CATALOGUE)
    assert len(catalogue) > 300
    assert [message for message, texts in catalogue.items() if not all(texts)] == []
    assert "fuzzy" not in CATALOGUE.read_text()


def test_a_translation_has_the_placeholders_of_its_message():
    wrong = [
        message
        for message, texts in messages(CATALOGUE).items()
        if len(texts) == 1 and placeholders(message) != placeholders(texts[0])
    ]
    assert wrong == []


def placeholders(text):
    return sorted(re.findall(r"%\(\w+\)\.?\d*[sdf]", text))


def test_the_compiled_catalogue_is_the_written_one():
    with CATALOGUE.with_suffix(".mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    for message, texts in messages(CATALOGUE).items():
        if len(texts) == 1:
            assert compiled.gettext(message) == texts[0]
        else:
            assert compiled.ngettext(message, message, 1) == texts[0]


@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="msgfmt is not installed")
def test_the_catalogue_can_be_compiled(tmp_path):
    command = ["msgfmt", "--check-format", "-o", tmp_path / "django.mo", CATALOGUE]
    subprocess.run(command, check=True)


@pytest.mark.skipif(shutil.which("xgettext") is None, reason="xgettext is not installed")
def test_every_message_of_the_code_is_in_the_catalogue(tmp_path):
    package = tmp_path / "django_runstore"
    shutil.copytree(ROOT / "django_runstore", package)
    subprocess.run(
        [sys.executable, "-m", "django", "makemessages", "-l", "de", "--no-location", "-v0"],
        cwd=package,
        check=True,
    )
    fresh = messages(package / CATALOGUE.relative_to(ROOT / "django_runstore"))
    assert fresh.keys() == messages(CATALOGUE).keys()


def test_the_functions_of_translation_keep_the_names_that_texts_are_looked_for_by():
    # What calls gettext by a name of its own is not found, and stays untranslated.
    renamed = [
        f"{path.relative_to(ROOT)}: {alias.name} as {alias.asname}"
        for path in (ROOT / "django_runstore").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "django.utils.translation"
        for alias in node.names
        if alias.asname not in (None, "_")
    ]
    assert renamed == []


def test_no_text_of_djangos_is_said_in_another_way():
    # Catalogues are merged: what is translated here is translated so in the whole project.
    folder = Path(django.__file__).parent
    known = {}
    for path in folder.rglob("locale/de/LC_MESSAGES/django.mo"):
        with path.open("rb") as file:
            known |= gettext.GNUTranslations(file)._catalog
    for path in folder.rglob("locale/en/LC_MESSAGES/django.po"):
        known = dict.fromkeys(messages(path)) | known
    differing = {
        message
        for message, texts in messages(CATALOGUE).items()
        if message in known and known[message] != texts[0]
    }
    # Said as Django means it, and not translated there.
    assert differing <= {"entry", "Pagination %(name)s", "Search %(name)s"}
