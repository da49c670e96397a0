"""A progress bar on a terminal's stderr, for work that takes a while."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

#: Work that is done sooner (seconds) shows no bar, and does not load the library that draws it.
_PATIENCE = 0.5


@contextmanager
def track(total: float | None, description: str, progress: bool | None = None) -> Iterator[Callable[[float], None]]:
    """Give a function ``advance(n)`` that moves a bar towards ``total`` (None: the end is not known).

    ``progress=None`` shows the bar when stderr is a terminal and the work takes more than half a second; True always,
    False never.

    >>> with track(2, "reading", progress=False) as advance:
    ...     advance(1)
    """
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield lambda _count: None
        return
    with ExitStack() as stack:
        bar = _Bar(total, description, stack)
        if progress:
            bar.show()
        yield bar.advance


class _Bar:
    def __init__(self, total: float | None, description: str, stack: ExitStack) -> None:
        self.total, self.description, self.stack = total, description, stack
        self.done = 0.0
        self.begun = time.monotonic()
        self.drawn: Any = None
        self.task: Any = None

    def show(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        console = Console(file=sys.stderr)
        self.drawn = self.stack.enter_context(Progress(console=console, transient=console.is_terminal))
        self.task = self.drawn.add_task(self.description, total=self.total, completed=self.done)

    def advance(self, count: float) -> None:
        self.done += count
        if self.drawn is not None:
            self.drawn.update(self.task, completed=self.done)
        elif time.monotonic() - self.begun > _PATIENCE:
            self.show()
