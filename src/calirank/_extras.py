"""Optional dependencies: imported when needed; an absent one says what to type."""

from __future__ import annotations

import importlib
from typing import Any


def optional(module: str, *, extra: str, purpose: str) -> Any:
    """The module of an extra, or an ``ImportError`` that names the extra and the line to type.

    >>> optional("no_such_module", extra="zstd", purpose="reading a.zst")
    Traceback (most recent call last):
    ImportError: reading a.zst needs the extra "zstd", which is not installed; type: pip install "calirank[zstd]"
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(
            f'{purpose} needs the extra "{extra}", which is not installed; type: pip install "calirank[{extra}]"'
        ) from None
