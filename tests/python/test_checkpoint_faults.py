"""A bad checkpoint ends all ranks before any reads a tensor, with one message that names the file."""

import json
import pathlib
import time

import pytest
from headway_process import run
from safetensors.numpy import load_file, save_file
from tiny_model import write_model

OPTIONS = ("--token-ids", "5,17", "--max-tokens", "4", "--tp", "2")
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def write_shards(folder: pathlib.Path) -> pathlib.Path:
    """The tiny model in two files with an index."""
    write_model(folder)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    halves = (names[: len(names) // 2], names[len(names) // 2:])
    for shard, half in zip(SHARDS, halves):
        save_file({name: tensors[name] for name in half}, folder / shard)
    weight_map = {name: shard for shard, half in zip(SHARDS, halves) for name in half}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return folder


def absent(file: pathlib.Path) -> list[str]:  # Fault case B12.
    file.unlink()
    return [file.name, "model.safetensors.index.json", "absent"]


def cut(file: pathlib.Path) -> list[str]:  # Fault case B13.
    whole = file.stat().st_size
    with file.open("r+b") as stream:
        stream.truncate(whole - 1)
    return [file.name, str(whole), str(whole - 1)]


def pointer(file: pathlib.Path) -> list[str]:  # Fault case B14.
    file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 988097824\n")
    return [file.name, "Git LFS pointer"]


def test_shards_are_read(tmp_path):
    whole = run(write_model(tmp_path / "whole"), *OPTIONS)
    assert whole.returncode == 0 and whole.stdout
    assert run(write_shards(tmp_path / "shards"), *OPTIONS).stdout == whole.stdout


@pytest.mark.parametrize("spoil", [absent, cut, pointer])
@pytest.mark.parametrize("shard", SHARDS)
def test_a_bad_shard_ends_all_ranks_with_one_message(tmp_path, spoil, shard):
    folder = write_shards(tmp_path / "model")
    wanted = spoil(folder / shard)
    start = time.monotonic()
    done = run(folder, *OPTIONS)
    assert time.monotonic() - start < 10
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.count("headway: error:") == 1, done.stderr
    assert [part for part in wanted if part not in done.stderr.split("headway: error:")[1]] == []
