"""Runs the headway binary and reads what it prints."""

import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("HEADWAY_BUILD_DIR", ROOT / "build")) / "bin" / "headway"


def generate(model: pathlib.Path, *options: str, seconds: int = 120) -> dict:
    """The object that `headway generate --json` prints; fails the test with its errors if it fails."""
    command = [str(BINARY), "generate", "--model", str(model), "--json", *options]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
