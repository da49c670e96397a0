"""What all tests share: where the real data lies, and that its tests run where it is."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

REAL_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

# Compilation and a busy machine make single examples slow; what is slow shows in the durations of tests.
settings.register_profile("calirank", deadline=None)
settings.load_profile("calirank")

_skipped_beside_data = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real ranking data beside the project; a test that needs it is skipped where it is absent."""
    if not _data_is_there():
        pytest.skip("the real data is not beside the project (shared/data)")
    return REAL_DATA


def _data_is_there() -> bool:
    return (REAL_DATA / "README.md").is_file()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_skipped_beside_data] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and _data_is_there() and "real_data" in getattr(item, "fixturenames", ()):
        item.config.stash[_skipped_beside_data].append(item.nodeid)
    return report


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Where the real data is present, a skipped test of it fails the run."""
    if session.config.stash[_skipped_beside_data] and exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for name in config.stash[_skipped_beside_data]:
        terminalreporter.write_line(f"FAILED {name}: skipped although the real data is present", red=True)
