"""The scripts of examples/python run and say what they should."""

import subprocess
import sys

import pytest
from headway_process import MPIRUN
from test_llm import SMOLLM2, environment


def run(root, starter: list[str], name: str, *arguments: str) -> str:
    done = subprocess.run([*starter, sys.executable, str(root / "examples" / "python" / name), *arguments],
                          env=environment(root), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_generate(root):
    printed = run(root, [], "generate.py", str(SMOLLM2), "2")
    first, second = printed.split("\nWater boils at|")
    assert first.startswith("The three primary colours are| ")
    for text in (first, second):
        assert "| (length)\n  first token: {" in text or "| (stop)\n  first token: {" in text


@pytest.mark.parametrize("ranks, heads", ((4, ["range(0, 4)", "range(4, 9)"] * 2), (1, ["range(0, 9)"])))
def test_attention_block(root, ranks, heads):
    printed = run(root, [*MPIRUN, "-np", str(ranks)], "attention_block.py").splitlines()
    assert len(printed) == ranks
    assert all(part in line for part, line in zip(heads, printed, strict=True))


def test_shard_by_mesh(root):
    printed = run(root, [*MPIRUN, "-np", "3"], "shard_by_mesh.py").splitlines()
    assert printed[0].split()[:4] == ["model.embed_tokens", "VocabParallelEmbedding", "(x,", "None)"]
    assert printed[-1].startswith("largest difference of a logit")
