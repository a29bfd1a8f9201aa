"""`headway generate` on several ranks: groups of the vocabulary, text as it comes, memory, how a text ends."""

import itertools
import json
import os
import pathlib
import subprocess
import sys

import pytest
from headway_process import ROOT, command, generate, run
from tiny_model import VOCAB, write_model

SMOLLM2 = ROOT / ".cache" / "models" / "SmolLM2-135M-Instruct"
PROMPT = ("--token-ids", "5,17,301,44")
HIDDEN = 64  # of the tiny model
LIMIT = 60  # seconds


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return write_model(tmp_path_factory.mktemp("ranks") / "tiny", positions=65536)


def table_rows(group: str, rank: int) -> int:
    """The vocabulary's rows that a rank of 4 holds, with attention over 2: whole granules of 64, of which it has 5."""
    place, size = {"tp": (rank, 4), "lm_head_tp": (rank % 2, 2), "none": (0, 1)}[group]
    granules = VOCAB // 64
    return 64 * ((place + 1) * granules // size - place * granules // size)


GROUPS = ("tp", "lm_head_tp", "none")


@pytest.fixture(scope="module")
def alone(model) -> dict:
    return generate(model, *PROMPT, "--max-tokens", "20")


@pytest.mark.parametrize("embedding, lm_head", list(itertools.product(GROUPS, GROUPS)))
def test_groups_of_the_vocabulary_change_what_is_held_and_no_token(model, alone, embedding, lm_head):
    result = generate(model, *PROMPT, "--max-tokens", "20", "--tp", "4", "--attn-tp", "2",
                      "--embedding-group", embedding, "--lm-head-group", lm_head)
    assert result["token_ids"] == alone["token_ids"]
    tables = [4 * HIDDEN * (table_rows(embedding, rank) + table_rows(lm_head, rank)) for rank in range(4)]
    others = {rank["parameter_bytes"] - table for rank, table in zip(result["ranks"], tables)}
    assert len(others) == 1  # the rest is cut alike on every rank, whatever the groups
    assert others.pop() == rest_of_a_rank()


def rest_of_a_rank() -> int:
    """Bytes of a rank of 4 without the vocabulary's tables: 2 of 4 query heads, 1 of 2 KV heads, 32 of 128 columns."""
    attention = (2 + 2 * 1) * 16 * (HIDDEN + 1) + HIDDEN * 2 * 16
    mlp = 3 * 32 * HIDDEN
    return 4 * (2 * (attention + mlp + 2 * HIDDEN) + HIDDEN)


def test_text_is_written_while_it_is_generated(model, tmp_path):
    endless = command(model, *PROMPT, "--max-tokens", "60000", "--ignore-eos", "--tp", "2")
    with open(tmp_path / "errors", "wb") as errors, \
            subprocess.Popen(endless, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors) as process:
        try:
            pieces = [os.read(process.stdout.fileno(), 1 << 16) for _ in range(3)]
            assert process.poll() is None  # it will be at this for minutes
        finally:
            process.kill()
    assert all(pieces)
    whole = run(model, *PROMPT, "--max-tokens", "400", "--ignore-eos").stdout.rstrip("\n").encode()
    streamed = b"".join(pieces)
    length = min(len(whole), len(streamed))
    assert streamed[:length] == whole[:length]  # nothing else is on standard output, and nothing twice
    assert b"tp 2" in (tmp_path / "errors").read_bytes()


@pytest.mark.parametrize("place", (3, 0))
def test_an_end_of_sequence_token_stops(tmp_path, place):
    folder = write_model(tmp_path / "tiny")
    tokens = generate(folder, *PROMPT, "--max-tokens", "20")["token_ids"]
    config = json.loads((folder / "config.json").read_text()) | {"eos_token_id": tokens[place]}
    (folder / "config.json").write_text(json.dumps(config))
    end = tokens.index(tokens[place]) + 1
    for tp in ("1", "2"):
        stopped = generate(folder, *PROMPT, "--max-tokens", "20", "--tp", tp)
        assert (stopped["finish_reason"], stopped["token_ids"]) == ("stop", tokens[:end])
        assert stopped["completion_tokens"] == end
    through = generate(folder, *PROMPT, "--max-tokens", "20", "--ignore-eos")
    assert (through["finish_reason"], through["token_ids"]) == ("length", tokens)
    exactly = generate(folder, *PROMPT, "--max-tokens", str(end))
    assert exactly["finish_reason"] == "stop"  # also where the limit is reached with it


# Runs a command and writes what the kernel counted as its peak, in KiB, below its errors. A small process starts it,
# since the count begins with the memory of whoever does.
WATCHED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print("peak", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


def test_peak_memory_is_what_the_system_saw():
    words = command(SMOLLM2, "--dtype", "fp32", *PROMPT, "--max-tokens", "4", "--json")
    place = {"WORLD_SIZE": "2", "HEADWAY_JOB_ID": f"peak-memory-{os.getpid()}"}
    ranks = [subprocess.Popen([sys.executable, "-c", WATCHED, *words], stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=os.environ | place | {"RANK": str(rank)}) for rank in range(2)]
    outputs = [rank.communicate(timeout=LIMIT) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], outputs
    result = json.loads(outputs[0][0])
    for rank, (_, errors) in zip(result["ranks"], outputs):
        peak = int(errors.split()[-1]) * 1024
        assert rank["peak_rss_bytes"] > rank["parameter_bytes"]
        assert 0.95 * peak < rank["peak_rss_bytes"] <= 1.01 * peak
