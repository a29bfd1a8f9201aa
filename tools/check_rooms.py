"""Checks which files include which: a room includes only rooms above it and none that it must not know of.

usage: check_rooms.py [ROOT]

Prints one line per breach and exits 1 if there is any.
"""

import pathlib
import re
import sys
from dataclasses import dataclass

# From the top down: a room may include itself and those before it, except where FORBIDDEN says otherwise.
ROOMS = ("base", "config", "parallel", "weights", "kernels", "layers", "models", "plan", "spmd", "tokenizer", "engine",
         "server", "cli")
FORBIDDEN = {
    "weights": {"parallel"},
    "plan": {"weights", "kernels", "layers", "models"},
    "tokenizer": {"parallel", "weights", "kernels", "layers", "models", "plan", "spmd"},
}
TENSOR_FREE_ROOMS = {"base", "config", "plan", "tokenizer"}
# Headers that cost more compile time than they give.
BANNED_HEADERS = ("torch/torch.h", "torch/extension.h", "torch/all.h", "torch/nn.h", "ATen/ATen.h", "ATen/Functions.h")
COMMUNICATION_HEADERS = re.compile(r"^(torch/csrc/distributed/|c10d/|gloo/|nccl\.h$|mpi\.h$)")
TENSOR_HEADERS = re.compile(r"^(ATen|c10|torch)/")
PUBLIC_TENSOR_HEADERS = re.compile(r"^(ATen/core/Tensor\.h|c10/core/\w+\.h)$")
PRIVATE_LIBRARIES = re.compile(r"^(nlohmann|fmt|CLI|pcre2|utf8proc)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]')


@dataclass(frozen=True)
class Breach:
    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def room_of_include(target: str) -> str | None:
    parts = target.split("/")
    if parts[0] == "headway":
        parts = parts[1:]
    return parts[0] if len(parts) > 1 and parts[0] in ROOMS else None


def check_room(room: str, target_room: str) -> str | None:
    if ROOMS.index(target_room) > ROOMS.index(room):
        return f"room {room} lies above {target_room} and may not include it"
    if target_room in FORBIDDEN.get(room, ()):
        return f"room {room} knows nothing of {target_room}"
    return None


def check_library(room: str, public: bool, target: str) -> str | None:
    if target in BANNED_HEADERS:
        return f"{target} costs too much compile time; include the operators or ATen/core/Tensor.h"
    if room != "parallel" and COMMUNICATION_HEADERS.match(target):
        return f"only room parallel includes {target}"
    if room in TENSOR_FREE_ROOMS and TENSOR_HEADERS.match(target):
        return f"room {room} knows nothing of tensors ({target})"
    if public and TENSOR_HEADERS.match(target) and not PUBLIC_TENSOR_HEADERS.match(target):
        return f"a public header includes ATen/core/Tensor.h and c10/core at most, not {target}"
    if public and PRIVATE_LIBRARIES.match(target):
        return f"a public header may not include {target}, which a linking program need not have"
    return None


def check_include(room: str, public: bool, target: str, root: pathlib.Path) -> str | None:
    target_room = room_of_include(target)
    if target_room is None:
        return check_library(room, public, target)
    if public and not (root / "include" / target).exists():
        return f"a public header may not include the private {target}"
    return check_room(room, target_room)


def check_tree(root: pathlib.Path) -> list[Breach]:
    breaches = []
    for base, public in (("include/headway", True), ("src", False)):
        for path in sorted((root / base).rglob("*")):
            if path.suffix not in (".h", ".cpp"):
                continue
            relative = path.relative_to(root).as_posix()
            room = path.relative_to(root / base).parts[0]
            if room not in ROOMS:
                breaches.append(Breach(relative, 1, f"{room} is not a room"))
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                text = check_include(room, public, match.group(1), root) if match else None
                if text:
                    breaches.append(Breach(relative, number, text))
    return breaches


def main() -> int:
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    breaches = check_tree(root)
    for breach in breaches:
        print(breach)
    if not breaches:
        print("rooms: every include is in order")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
