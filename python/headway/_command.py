"""The `headway` command: runs the binary that is installed beside this file."""

import importlib.util
import os
import pathlib
import sys

BINARY = pathlib.Path(__file__).parent / "bin" / "headway"


def main() -> None:
    """Becomes the binary, which is told where this interpreter's torch has its libraries."""
    torch = importlib.util.find_spec("torch")
    if torch is None or torch.origin is None:
        sys.exit("headway: torch is not installed for " + sys.executable)
    folders = [str(pathlib.Path(torch.origin).parent / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
    environment = os.environ | {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, folders))}
    os.execve(BINARY, ["headway", *sys.argv[1:]], environment)
