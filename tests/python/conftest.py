"""What the Python tests share: the project's folders and its tools as modules."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: left out of `make test`")


@pytest.fixture(scope="session")
def root() -> pathlib.Path:
    return ROOT
