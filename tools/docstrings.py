"""For the documentation: the docstrings' examples as code blocks, and their references to names as code."""

import re
from typing import Any

import griffe


class Docstrings(griffe.Extension):
    """Rewrites each docstring from the plain text of the sources to Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None and not obj.is_alias:
            obj.docstring.value = to_markdown(obj.docstring.value)


def to_markdown(text: str) -> str:
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text)
    text = re.sub(r"::\n", ":\n", text)
    text = re.sub(r"\.\. math:: (.+)", r"$$\1$$", text)
    blocks = re.split(r"\n\s*\n", text)
    return "\n\n".join(f"```pycon\n{block}\n```" if block.lstrip().startswith(">>>") else block for block in blocks)
