"""Write into README.md and docs/ what the code knows: the table of formats and the list of references.

Each place is marked by ``<!-- name -->`` and ``<!-- /name -->``; tests check that the pages are up to date.
"""

import re
from pathlib import Path

from calirank.data.formats import markdown_table
from calirank.guarantees import REFERENCES

ROOT = Path(__file__).resolve().parents[1]
PARTS = {
    "formats": markdown_table(),
    "references": "\n".join(f"- **{key}** {reference}" for key, reference in REFERENCES.items()),
}

for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
    text = page.read_text(encoding="utf-8")
    for name, part in PARTS.items():
        marked = rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)"
        text = re.sub(marked, lambda match, part=part: f"{match[1]}\n{part}\n{match[2]}", text, flags=re.DOTALL)
    page.write_text(text, encoding="utf-8")
