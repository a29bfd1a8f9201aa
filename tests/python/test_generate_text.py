"""`headway generate` with SmolLM2's vocabulary: chats, files, and how a text ends."""

import json
import pathlib

import pytest
from headway_process import ROOT, generate, run
from transformers import PreTrainedTokenizerFast

MODEL = ROOT / ".cache" / "models" / "SmolLM2-135M-Instruct"
EXACT = ("--dtype", "fp32")
QUESTION = "What is the capital of France? Answer in one word."
CHAT = ("--chat", "--prompt", QUESTION, "--max-tokens", "60")
MARKER = "<|im_end|>"


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast.from_pretrained(MODEL)


@pytest.fixture(scope="module")
def answer() -> dict:
    return generate(MODEL, *EXACT, *CHAT)


def joined(ids: list[int]) -> str:
    return ",".join(map(str, ids))


def test_a_chat_ends_by_itself(answer, tokenizer):
    ids = answer["token_ids"]
    assert answer["finish_reason"] == "stop"
    assert ids[-1] == tokenizer.convert_tokens_to_ids(MARKER)
    assert answer["completion_tokens"] == len(ids) < 60
    assert answer["text"] == tokenizer.decode(ids[:-1])
    assert "Paris" in answer["text"]


@pytest.mark.parametrize("system", (None, "You answer with numbers only."))
def test_a_chat_is_what_its_template_makes_of_it(answer, tokenizer, system):
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": QUESTION})
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    chat = generate(MODEL, *EXACT, *CHAT, "--system", system) if system else answer
    given = generate(MODEL, *EXACT, "--token-ids", joined(prompt), "--max-tokens", "60")
    assert chat["prompt_tokens"] == len(prompt)
    assert (chat["token_ids"], chat["text"]) == (given["token_ids"], given["text"])
    assert (chat["token_ids"] == answer["token_ids"]) == (system is None)


# Fault case F01: the config's end-of-sequence token is another than the tokenizer's, which the model emits.
@pytest.mark.parametrize("config_eos", (0, [0, 3], None))
def test_either_end_of_sequence_token_ends_a_text(answer, tmp_path, config_eos):
    folder = tmp_path / "model"
    folder.mkdir()
    for file in ("model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        (folder / file).symlink_to(MODEL / file)
    config = json.loads((MODEL / "config.json").read_text()) | {"eos_token_id": config_eos}
    (folder / "config.json").write_text(json.dumps(config))
    result = generate(folder, *EXACT, *CHAT)
    assert result["finish_reason"] == "stop"
    assert result["token_ids"] == answer["token_ids"]
    assert MARKER not in result["text"]
    assert result["text"] == answer["text"]


def test_the_text_alone_goes_to_standard_output(answer):
    done = run(MODEL, *EXACT, *CHAT, "--tp", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout == answer["text"] + "\n"
    assert answer["text"] not in done.stderr
    for part in ("2 ranks, launched by headway", "loaded", "query heads", "tokens/s", "ended by stop"):
        assert part in done.stderr


def test_a_limit_ends_a_text_as_well(answer, tokenizer):
    result = generate(MODEL, *EXACT, *CHAT[:-1], "3")
    assert result["finish_reason"] == "length"
    assert result["token_ids"] == answer["token_ids"][:3]
    assert result["text"] == tokenizer.decode(answer["token_ids"][:3])


def test_a_prompt_file_is_the_prompt(tmp_path, tokenizer):
    prompt = 'Liste:\n\t1. "Äpfel" 🍏\n\t2. 日本\n'
    file = tmp_path / "prompt.txt"
    file.write_bytes(prompt.encode())
    options = (*EXACT, "--max-tokens", "5", "--ignore-eos")
    from_file, from_option = (generate(MODEL, *options, *source)
                              for source in (("--prompt-file", str(file)), ("--prompt", prompt)))
    assert from_file["prompt_tokens"] == len(tokenizer(prompt).input_ids)
    assert (from_file["token_ids"], from_file["text"]) == (from_option["token_ids"], from_option["text"])


@pytest.mark.parametrize("name, content, named", [("absent.txt", None, "absent.txt cannot be read"),
                                                  ("", None, "is a folder"), ("empty.txt", b"", "the prompt is empty")])
def test_prompt_files_that_are_no_prompt_are_refused(tmp_path: pathlib.Path, name, content, named):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    done = run(MODEL, "--prompt-file", str(tmp_path / name))
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert named in done.stderr
