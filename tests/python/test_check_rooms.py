"""tools/check_rooms.py finds each kind of breach and accepts what is allowed."""

import pathlib

import check_rooms
import pytest


def write(root: pathlib.Path, files: dict[str, str]) -> pathlib.Path:
    for folder in ("include/headway/base", "src/base"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_the_project_itself_is_in_order(root):
    assert check_rooms.check_tree(root) == []


def test_accepts_rooms_above_and_private_headers_in_sources(tmp_path):
    write(tmp_path, {
        "include/headway/base/error.h": "#include <stdexcept>\n",
        "src/base/json.h": "#include <nlohmann/json.hpp>\n",
        "src/layers/linear.cpp": '#include "headway/base/error.h"\n#include "base/json.h"\n#include <ATen/ops/mm.h>\n',
        "src/parallel/gloo.cpp": "#include <torch/csrc/distributed/c10d/Backend.hpp>\n",
    })
    assert check_rooms.check_tree(tmp_path) == []


@pytest.mark.parametrize("name, line, part", [
    ("src/base/a.cpp", '#include "headway/config/model_config.h"', "base lies above config"),
    ("src/weights/a.cpp", '#include "parallel/launch.h"', "weights knows nothing of parallel"),
    ("src/tokenizer/a.cpp", '#include "headway/layers/module.h"', "tokenizer knows nothing of layers"),
    ("src/layers/a.cpp", "#include <torch/csrc/distributed/c10d/Backend.hpp>", "only room parallel"),
    ("src/layers/a.cpp", "#include <torch/torch.h>", "compile time"),
    ("src/config/a.cpp", "#include <ATen/core/Tensor.h>", "config knows nothing of tensors"),
    ("include/headway/layers/a.h", "#include <ATen/ops/mm.h>", "at most"),
    ("include/headway/base/a.h", "#  include <nlohmann/json.hpp>", "may not include nlohmann/json.hpp"),
    ("include/headway/base/a.h", '#include "base/json.h"', "private base/json.h"),
    ("src/kitchen/a.cpp", "", "kitchen is not a room"),
])
def test_names_the_breach_with_its_place(tmp_path, name, line, part):
    write(tmp_path, {name: f"// first line\n{line}\n"})
    breaches = check_rooms.check_tree(tmp_path)
    assert len(breaches) == 1
    assert part in breaches[0].text
    assert breaches[0].path == name
    assert breaches[0].line == (2 if line else 1)
