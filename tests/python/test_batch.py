"""`headway batch` from outside: SmolLM2's answers, refusals by name, and resumption without loss or repetition."""

import json
import pathlib
import signal
import subprocess
import time

import pytest
from headway_process import BINARY, ROOT, generate

MODEL = ROOT / ".cache" / "models" / "SmolLM2-135M-Instruct"
COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
# 160 blocks are 2560 tokens; more would only take memory.
SERVING = ("--dtype", "fp32", "--kv-blocks", "160", "--max-model-len", "512")


def request(custom_id: str, body: dict, url: str = COMPLETIONS) -> dict:
    return {"custom_id": custom_id, "method": "POST", "url": url, "body": body}


def write_lines(path: pathlib.Path, lines: list[dict]) -> pathlib.Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def read_results(path: pathlib.Path) -> dict[str, dict]:
    """The results by custom_id; none may be there twice."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    results = {line["custom_id"]: line for line in lines}
    assert len(results) == len(lines)
    return results


def command(source: pathlib.Path, results: pathlib.Path, *options: str, model: pathlib.Path = MODEL) -> list[str]:
    return [str(BINARY), "batch", "--model", str(model), "--input", str(source), "--output", str(results), *SERVING,
            *options]


def run(source: pathlib.Path, results: pathlib.Path, *options: str) -> subprocess.CompletedProcess:
    return subprocess.run(command(source, results, *options), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=180)


def choices(result: dict) -> list[dict]:
    assert (result["response"]["status_code"], result["error"]) == (200, None), result
    return result["response"]["body"]["choices"]


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """One batch on two ranks that most tests look at."""
    folder = tmp_path_factory.mktemp("batch")
    greedy = {"prompt": "La lune est", "max_tokens": 24, "temperature": 0}
    seeded = {"prompt": "The sky is", "max_tokens": 32, "temperature": 0.8, "seed": 42}
    chat = {"messages": [{"role": "user", "content": "What is the capital of France?"}], "max_tokens": 40,
            "temperature": 0}
    filler = [request(f"filler-{i}", {"prompt": f"Number {i} is", "max_tokens": 5 + i % 9}) for i in range(45)]
    lines = [request("greedy", greedy), request("seeded", seeded), *filler,
             *(request(f"greedy-{i}", greedy) for i in range(4)),
             request("seeded-again", seeded), request("chat", chat, CHAT),
             request("stop", {**greedy, "stop": [" de"]}),
             request("logprobs", {**greedy, "logprobs": 2, "echo": True, "max_tokens": 2}),
             request("several", {"prompt": ["One", "Two"], "n": 2, "max_tokens": 3, "seed": 7}),
             request("unknown", {**greedy, "top_a": 0.5}),
             request("tools", {**chat, "tools": [{"type": "function"}]}, CHAT),
             request("stream", {**greedy, "stream": True}),
             request("long", {**greedy, "max_tokens": 600}),
             request("embeddings", {"input": "x"}, "/v1/embeddings"),
             request("bias", {**greedy, "logit_bias": {"49152": 1}})]
    source, results = write_lines(folder / "in.jsonl", lines), folder / "out.jsonl"
    done = run(source, results, "--tp", "2")
    assert done.returncode == 0, done.stderr
    assert f"batch: {len(lines)} requests" in done.stderr and "6 failed, 0 found" in done.stderr
    found = read_results(results)
    assert found.keys() == {line["custom_id"] for line in lines}
    return found


def test_greedy_text_does_not_depend_on_the_batch(answered):  # Fault case D11, on the real model.
    alone = generate(MODEL, "--dtype", "fp32", "--tp", "2", "--prompt", "La lune est", "--max-tokens", "24")["text"]
    for name in ("greedy", "greedy-0", "greedy-1", "greedy-2", "greedy-3"):
        choice = choices(answered[name])[0]
        assert (choice["text"], choice["finish_reason"], choice["index"]) == (alone, "length", 0)


def test_seeded_text_does_not_depend_on_the_batch(answered):  # Fault case E22.
    alone = generate(MODEL, "--dtype", "fp32", "--tp", "2", "--prompt", "The sky is", "--max-tokens", "32",
                     "--temperature", "0.8", "--seed", "42")["text"]
    assert choices(answered["seeded"])[0]["text"] == choices(answered["seeded-again"])[0]["text"] == alone


def test_chat_ends_at_the_end_of_turn(answered):  # Fault case E19.
    choice = choices(answered["chat"])[0]
    assert choice["finish_reason"] == "stop"
    assert "Paris" in choice["message"]["content"] and "<|im_end|>" not in choice["message"]["content"]
    body = answered["chat"]["response"]["body"]
    assert (body["object"], body["model"]) == ("chat.completion", MODEL.name)


def test_stop_strings_and_logprobs(answered):
    whole, stopped = choices(answered["greedy"])[0]["text"], choices(answered["stop"])[0]
    assert " de" in whole and stopped["text"] == whole[:whole.index(" de")]
    assert (stopped["finish_reason"], stopped["stop_reason"]) == ("stop", " de")
    logprobs = choices(answered["logprobs"])[0]["logprobs"]
    text = choices(answered["logprobs"])[0]["text"]
    assert "".join(logprobs["tokens"]) == text and text.startswith("La lune est")
    assert logprobs["token_logprobs"][0] is None and all(value < 0 for value in logprobs["token_logprobs"][1:])
    assert [text[offset:][:len(token)] for offset, token in zip(logprobs["text_offset"], logprobs["tokens"])] == \
        logprobs["tokens"]


def test_lists_and_several_texts_share_one_answer(answered):
    several = choices(answered["several"])
    assert [choice["index"] for choice in several] == [0, 1, 2, 3]
    usage = answered["several"]["response"]["body"]["usage"]
    assert usage["completion_tokens"] == 12 and usage["total_tokens"] == usage["prompt_tokens"] + 12


@pytest.mark.parametrize("name, status, named", [
    ("unknown", 400, "top_a"), ("tools", 400, "tools"), ("stream", 400, "stream"), ("long", 400, "600"),
    ("embeddings", 404, "/v1/embeddings"), ("bias", 400, "49152"),
])
def test_what_is_not_served_is_named_in_its_line(answered, name, status, named):
    result = answered[name]
    assert result["response"]["status_code"] == status
    assert named in result["error"]["message"] == result["response"]["body"]["error"]["message"]


def test_replicas_that_own_sequences_change_no_text(tmp_path):
    lines = [request(f"r{i}", {"prompt": f"Number {i} is", "max_tokens": 20 + i % 7, "temperature": 0.8 * (i % 2),
                               "seed": i}) for i in range(20)]
    source = write_lines(tmp_path / "in.jsonl", lines)
    texts = []
    for replicas in ("replicate", "dp"):
        results = tmp_path / f"{replicas}.jsonl"
        done = run(source, results, "--tp", "2", "--attn-tp", "1", "--attn-replicas", replicas)
        assert done.returncode == 0, done.stderr
        texts.append({name: choices(result)[0]["text"] for name, result in read_results(results).items()})
    assert len(texts[0]) == 20 and texts[0] == texts[1]


def test_resumes_without_repeating_or_losing_a_line(tmp_path):
    lines = [request(f"r{i}", {"prompt": f"{i} times {i} is", "max_tokens": 40, "ignore_eos": True, "seed": i})
             for i in range(60)]
    source, results = write_lines(tmp_path / "in.jsonl", lines), tmp_path / "out.jsonl"
    process = subprocess.Popen(command(source, results, "--max-num-seqs", "4"), stdin=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    limit = time.monotonic() + 120
    while not results.exists() or results.read_bytes().count(b"\n") < 3:
        assert time.monotonic() < limit and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    before = results.read_bytes()
    kept = before[:before.rindex(b"\n") + 1]
    assert 3 <= kept.count(b"\n") < 60
    results.write_bytes(kept + b'{"custom_id":"r59","error":null,"id":"batch_req_60","resp')  # a line that was cut
    done = run(source, results)
    assert done.returncode == 0, done.stderr
    assert f"{kept.count(10)} found in the output" in done.stderr
    assert results.read_bytes().startswith(kept)
    found = read_results(results)
    assert found.keys() == {line["custom_id"] for line in lines}
    assert all(len(choices(result)) == 1 for result in found.values())
    again = run(source, results)
    assert again.returncode == 0 and "60 found in the output" in again.stderr
    assert read_results(results) == found


@pytest.mark.parametrize("text, named", [
    ('{"custom_id": "a"}\n{:\n', ":2"), ('{"custom_id": "a"}\n\n{"custom_id": "a"}\n', ':3: custom_id "a"'),
    ('{"method": "POST"}\n', ":1: not an object with a custom_id"), ("[1]\n", ":1: not an object"),
])
def test_a_file_whose_results_could_not_be_told_apart_is_refused(tmp_path, text, named):
    source = tmp_path / "in.jsonl"
    source.write_text(text)
    done = run(source, tmp_path / "out.jsonl", "--tp", "2")
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("headway: error: ") == 1 and named in done.stderr


def test_an_output_of_another_batch_is_refused(tmp_path):
    source = write_lines(tmp_path / "in.jsonl", [request("a", {"prompt": "x"})])
    other = write_lines(tmp_path / "other.jsonl", [{"custom_id": "b", "response": {}}])
    done = run(source, other)
    assert done.returncode == 2 and "requests that --input lacks" in done.stderr


@pytest.mark.parametrize("text", ["not JSON\n", "not JSON", '{"precious": 1}', '{"custom_id": "a"}\n'])
def test_a_file_that_is_no_output_is_refused_and_kept(tmp_path, text):
    source = write_lines(tmp_path / "in.jsonl", [request("a", {"prompt": "x"})])
    other = tmp_path / "notes.txt"
    other.write_text(text)
    done = run(source, other)
    assert done.returncode == 2 and "not a result of a batch" in done.stderr
    assert other.read_text() == text


def test_the_input_is_no_output(tmp_path):
    source = write_lines(tmp_path / "in.jsonl", [request("a", {"prompt": "x"})])
    source.write_bytes(source.read_bytes().rstrip())
    before = source.read_bytes()
    linked = tmp_path / "linked.jsonl"
    linked.hardlink_to(source)
    for output in (source, linked):
        done = run(source, output)
        assert done.returncode == 2 and "are both" in done.stderr
        assert source.read_bytes() == before
