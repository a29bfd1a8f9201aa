"""`headway verify`: right layouts pass, a wrong one is caught and placed, and so is a wrong reference."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest
from headway_process import BINARY
from safetensors.torch import load_file, save_file
from tiny_model import write_config, write_model

SWAP = "HEADWAY_TEST_SWAP_KV_HEADS"
LIMIT = 90  # seconds


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """9 query heads that read 3 KV heads: two ranks hold 4 + 5 and copy the KV head between them."""
    return write_model(tmp_path_factory.mktemp("verify") / "nine", q_heads=9, kv_heads=3)


@pytest.fixture(scope="module")
def reference(model: pathlib.Path, tmp_path_factory: pytest.TempPathFactory, root: pathlib.Path) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("reference")
    (folder / "prompts.json").write_text("[[5, 17, 301, 44], [7]]")
    out = folder / "logits.safetensors"
    subprocess.run([sys.executable, root / "tools" / "reference_logits.py", model, folder / "prompts.json", out,
                    "--tokens", "6"], check=True, timeout=LIMIT, env=os.environ | {"OMP_NUM_THREADS": "1"})
    return out


def verify(model: pathlib.Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BINARY, "verify", "--model", model, *options], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=LIMIT,
                          env=os.environ | {"OMP_NUM_THREADS": "1"} | variables)


def verify_json(model: pathlib.Path, *options: str, code: int = 0, **variables: str) -> dict:
    done = verify(model, "--json", *options, **variables)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_all_layouts_of_three_ranks_agree(model):
    report = verify_json(model, "--ranks", "3", "--tokens", "12")
    assert report.keys() == {"model", "dtype", "prompt_tokens", "tokens", "reference", "layouts", "agrees"}
    assert (report["model"], report["dtype"], report["tokens"]) == ("nine", "fp32", 12)
    assert report["agrees"] is True and report["reference"] is None
    assert len(report["prompt_tokens"]) == 5
    assert [(layout["tp"], layout["attn_tp"]) for layout in report["layouts"]] == [(2, 1), (2, 2), (3, 1), (3, 3)]
    for layout in report["layouts"]:
        assert layout.keys() == {"tp", "attn_tp", "agrees", "exit_code", "dtype", "bounds", "logit", "logprob",
                                 "first_different_token", "breaches", "bisection"}
        assert layout["agrees"] is True and layout["breaches"] == [] and layout["exit_code"] == 0
        assert layout["first_different_token"] is None and layout["bisection"] is None
        # Sums of other lengths round differently: no difference at all would mean that nothing was compared.
        assert 0 < layout["logit"]["relative"] < 1e-5
        assert 0 < layout["logprob"]["value"] < 1e-4


@pytest.mark.parametrize("layouts, rank, layer, kv_heads", [("2:2", 0, 1, [0, 1]), ("2:2", 1, 0, [1, 2]),
                                                            ("4:2", 2, 1, [0, 1])])
def test_swapped_heads_are_placed(model, layouts, rank, layer, kv_heads):
    report = verify_json(model, "--layouts", layouts, "--tokens", "4", "--bisect", code=1, **{SWAP: f"{rank}:{layer}"})
    layout, = report["layouts"]
    assert report["agrees"] is layout["agrees"] is False
    assert layout["logit"]["relative"] > 0.01
    assert layout["bisection"]["layer"] == layer
    assert layout["bisection"]["part"] == "keys and values"
    assert layout["bisection"]["ranks"] == [rank]
    assert layout["bisection"]["kv_heads"] == kv_heads


def test_the_text_names_the_layout_that_differs_and_one_that_agrees(model):
    done = verify(model, "--layouts", "2:2", "--tokens", "4", "--bisect", **{SWAP: "1:1"})
    assert done.returncode == 1
    assert "DIFFERS: layer 1, rank 1" in done.stdout
    assert "Not all agree." in done.stdout
    assert done.stdout.isascii()
    assert "[2/2] T=2 A=2" in done.stderr
    right = verify(model, "--layouts", "2:2", "--tokens", "4")
    assert right.returncode == 0
    assert "All agree." in right.stdout and "DIFFERS" not in right.stdout


def test_bf16_has_bounds_of_its_own(model):
    report = verify_json(model, "--layouts", "2:2", "--tokens", "6", "--dtype", "bf16")
    assert report["dtype"] == "bf16" and report["agrees"] is True
    layout, = report["layouts"]
    assert layout["bounds"] == {"same_tokens": False, "relative_logit": 1 / 64, "least_logprob": 0.05}
    assert 0 < layout["logprob"]["value"] <= layout["logprob"]["bound"]
    assert layout["logprob"]["bound"] >= 0.05


def test_a_swap_is_caught_in_bf16(model):
    report = verify_json(model, "--layouts", "2:2", "--tokens", "6", "--dtype", "bf16", "--bisect", code=1,
                         **{SWAP: "1:1"})
    bisection = report["layouts"][0]["bisection"]
    assert (bisection["layer"], bisection["ranks"], bisection["kv_heads"]) == (1, [1], [1, 2])


def test_transformers_agree(model, reference):
    report = verify_json(model, "--layouts", "3:3", "--reference", str(reference))
    assert report["agrees"] is report["reference"]["agrees"] is True
    assert report["prompt_tokens"] == [4, 1] and report["tokens"] == 6
    assert 0 < report["reference"]["logit"]["relative"] < 1e-4


def test_a_reference_that_differs_is_caught(model, reference, tmp_path):
    tensors = load_file(reference)
    tensors["prompt.1.logits"][2, 13] += 5
    save_file(tensors, tmp_path / "wrong.safetensors")
    report = verify_json(model, "--layouts", "2:2", "--reference", str(tmp_path / "wrong.safetensors"), code=1)
    assert report["agrees"] is report["reference"]["agrees"] is False
    logit = report["reference"]["logit"]
    assert (logit["prompt"], logit["position"], logit["token"]) == (1, 2, 13)
    assert abs(logit["absolute"] - 5) < 1e-3
    assert report["layouts"][0]["agrees"] is True  # it is compared with T=1


def test_prompts_of_a_file(model, tmp_path):
    (tmp_path / "prompts.json").write_text("[[1, 2, 3], [4, 5]]")
    report = verify_json(model, "--layouts", "2:2", "--tokens", "3", "--prompts", str(tmp_path / "prompts.json"))
    assert report["prompt_tokens"] == [3, 2]


@pytest.fixture(scope="module")
def config_only(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """No weights: what is refused here was refused before any rank was started."""
    return write_config(tmp_path_factory.mktemp("verify") / "config", q_heads=9, kv_heads=3)


@pytest.mark.parametrize("options, named", [
    (("--layouts", "10:10"), ("9 query heads", "1, 2, 5")),
    (("--layouts", "4:3"), ("3", "4", "1, 2, 4")),
    (("--layouts", "2:2,8:2", "--ranks", "4"), ("8:2", "4 of --ranks")),
    (("--layouts", "2x2"), ("2x2", "T:A")),
    (("--layouts", "0:1"), ("0",)),
    (("--ranks", "0"), ("--ranks is 0",)),
    (("--tokens", "0"), ("--tokens is 0",)),
    (("--time-limit", "0"), ("--time-limit is 0",)),
    (("--dtype", "int8"), ("int8", "bf16")),
    (("--reference", "absent", "--tokens", "3"), ("--reference", "--tokens")),
])
def test_bad_options_are_refused_with_what_is_legal(config_only, options, named):
    done = verify(config_only, *options)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("headway: error: ") == 1, done.stderr
    assert all(name in done.stderr for name in named), done.stderr


@pytest.mark.parametrize("content, named", [
    ("[[1, 320]]", "320"), ("[[]]", "prompt 0 is empty"), ('["text"]', "tokenizer.json"), ("[]", "holds no prompt"),
    ("{}", "no JSON list"), ("[5]", "neither")])
def test_bad_prompts_are_refused(config_only, tmp_path, content, named):
    (tmp_path / "prompts.json").write_text(content)
    done = verify(config_only, "--prompts", str(tmp_path / "prompts.json"))
    assert done.returncode == 2 and named in done.stderr, done.stderr


@pytest.mark.parametrize("fault", ["1", "1:7", "x:1"])
def test_a_test_fault_that_does_not_exist_is_no_silent_pass(model, fault):
    done = verify(model, "--layouts", "2:2", "--tokens", "2", **{SWAP: fault})
    assert done.returncode == 1 and "FAILED, exit code 2" in done.stdout
    assert SWAP in done.stderr


def test_a_launcher_is_refused(config_only):
    done = verify(config_only, RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="29500")
    assert done.returncode == 2 and "verify starts its ranks itself" in done.stderr


def test_nothing_is_left_behind(model, tmp_path):
    verify_json(model, "--layouts", "2:2", "--tokens", "2", TMPDIR=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


ENDLESS = ("--tokens", "60000", "--layouts", "2:2")  # minutes, if it is let


@pytest.fixture(scope="module")
def long_model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return write_model(tmp_path_factory.mktemp("verify") / "long", positions=65536)


def test_the_time_limit_ends_the_ranks(long_model, tmp_path):
    done = verify(long_model, *ENDLESS, "--time-limit", "2", TMPDIR=str(tmp_path))
    assert done.returncode == 1 and "time limit" in done.stderr
    assert list(tmp_path.iterdir()) == []


def ranks_of(pid: int) -> list[int]:
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_signal_ends_ranks_and_command(long_model, tmp_path):
    process = subprocess.Popen([BINARY, "verify", "--model", long_model, *ENDLESS], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=os.environ | {"TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"})
    while "loaded" not in process.stderr.readline():
        assert process.poll() is None
    rank, = ranks_of(process.pid)
    process.terminate()
    output, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 128 + signal.SIGTERM and output == ""
    assert not pathlib.Path(f"/proc/{rank}").exists()
    assert list(tmp_path.iterdir()) == []
