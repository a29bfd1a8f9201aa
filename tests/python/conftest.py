"""What the Python tests share: the project's folders, its tools as modules and its package."""

import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
PACKAGE = pathlib.Path(os.environ.get("HEADWAY_BUILD_DIR", ROOT / "build")) / "python"  # as the build leaves it
sys.path.insert(0, str(PACKAGE))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: left out of `make test`")


@pytest.fixture(scope="session")
def root() -> pathlib.Path:
    return ROOT
