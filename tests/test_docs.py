"""What the README and the docs show is run, and what they promise is there."""

from __future__ import annotations

import doctest
import re
import runpy
from pathlib import Path

import pytest

import calirank as cr

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_the_pages_run(page: Path) -> None:
    results = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8")
    assert results.failed == 0


def test_the_readme_begins_with_a_sentence_the_code_and_the_two_commands() -> None:
    head = "\n".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:30])
    assert re.search(r"\*\*calirank\*\* is [^.]+\.", head)
    assert "import calirank as cr" in head
    assert "\nmake demo " in head
    assert "\nmake test " in head


def test_the_code_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("train", "test"):
        cr.write_letor(cr.synthetic("grades", queries=5, seed=1), f"{name}.txt")
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    names: dict[str, object] = {}
    exec(code[1], names)
    assert len(names["table"]["ap"].per_query) == 5
    assert len(names["made"]) == 1000


def test_the_table_of_formats_is_made_from_the_registry() -> None:
    from calirank.data.formats import markdown_table

    for page in ("README.md", "docs/data.md"):
        assert markdown_table() in (ROOT / page).read_text(encoding="utf-8")


def test_the_references_are_those_of_the_library() -> None:
    from calirank.guarantees import REFERENCES

    page = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")
    for key, reference in REFERENCES.items():
        assert f"**{key}**" in page
        assert reference in page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_and_the_output_of_commands_are_what_the_code_makes(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    filled = runpy.run_path(str(ROOT / "tools" / "fill_pages.py"))["filled"]
    assert filled(text) == text, "python tools/fill_pages.py brings the pages up to date"


def test_every_public_name_is_there_and_documented() -> None:
    for name in cr.__all__:
        value = getattr(cr, name)
        if name != "__version__":
            assert (value.__doc__ or "").strip(), name
    with pytest.raises(AttributeError, match="Did you mean 'read_letor'"):
        cr.read_leter  # noqa: B018 - the look-up itself is what fails
    assert set(cr.__all__) <= set(dir(cr))


def test_no_page_names_a_machine() -> None:
    for page in [*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]:
        assert not re.search(r"/(home|root|work|Users)/", page.read_text(encoding="utf-8")), page.name


def test_no_place_of_a_generated_table_is_empty() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name in re.findall(r"<!-- (\w+) -->", text):
            inside = text.partition(f"<!-- {name} -->")[2].partition(f"<!-- /{name} -->")[0]
            assert len(inside.strip().splitlines()) > 2, f"{page.name}: {name}"
