"""Writes, for each fuzz target, inputs of 1 MiB that make the most of memory and time: many small values, many keys.

usage: worst_cases.py FOLDER    writes FOLDER/<target>/<name>
"""

import pathlib
import struct
import sys

LENGTH = 1 << 20


def repeated(before: str, unit: str, after: str) -> str:
    return before + unit * ((LENGTH - len(before) - len(after)) // len(unit)) + after


def numbered(before: str, entry: str, after: str) -> str:
    """Entries that differ by their number, written with commas between them."""
    entries, length = [], len(before) + len(after)
    for number in range(LENGTH):
        text = entry.replace("#", f"{number:x}")
        length += len(text) + 1
        if length > LENGTH:
            break
        entries.append(text)
    return before + ",".join(entries) + after


def documents() -> dict[str, str]:
    """JSON that no reader expects, and that costs each of them its time."""
    lists = {f"list_{name}": repeated('{"x":[', unit + ",", unit + "]}") for name, unit in (
        ("of_lists", "[]"), ("of_objects", "{}"), ("of_texts", '""'), ("of_numbers", "0"), ("of_pairs", '{"":0}'))}
    return lists | {"keys": numbered("{", '"#":[]', "}"), "inner_keys": numbered('{"x":{', '"#":0', "}}")}


def header(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def worst_cases() -> dict[str, dict[str, bytes]]:
    plain = {name: text.encode() for name, text in documents().items()}
    maps = {"tensors": numbered('{"weight_map":{', '"#":"a.safetensors"', "}}").encode(),
            "files": numbered('{"weight_map":{', '"#":"#.safetensors"', "}}").encode()}
    tokens = numbered('{"model":{"merges":[],"vocab":{', '"#":7', "}}}").encode()
    tensor = '"#":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    headers = {"tensors": header(numbered("{", tensor, "}")),
               "metadata": header(numbered('{"__metadata__":{', '"#":""', "}}"))}
    return {"model_config": plain, "checkpoint_index": plain | maps, "tokenizer": plain | {"tokens": tokens},
            "safetensors_header": headers}


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    for target, inputs in worst_cases().items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, content in inputs.items():
            (folder / target / name).write_bytes(content)


if __name__ == "__main__":
    main()
