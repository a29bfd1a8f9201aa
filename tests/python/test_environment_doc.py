"""docs/environment.md names every environment variable that the sources read or set, and no other."""

import re

VARIABLE = re.compile(r'"([A-Z][A-Z0-9]*(?:_[A-Za-z0-9]+)+|RANK|TERM)"')
NO_VARIABLES = {"F8_E4M3", "F8_E5M2"}  # dtypes


def test_every_variable_is_documented(root):
    sources = [path for folder in ("src", "include") for path in (root / folder).rglob("*") if path.suffix in (".cpp", ".h")]
    read = {name for path in sources for name in VARIABLE.findall(path.read_text())} - NO_VARIABLES
    assert {"HEADWAY_LOG", "RANK", "OMP_NUM_THREADS", "SLURM_PROCID", "HEADWAY_JOB_ID"} < read
    documented = set(re.findall(r"`([A-Z][A-Z0-9]*(?:_[A-Za-z0-9]+)+|RANK|TERM)`",
                                (root / "docs" / "environment.md").read_text()))
    assert documented == read
