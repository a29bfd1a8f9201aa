"""headway.LLM: the tokens of `headway generate` and of transformers, under every kind of launch, and how runs end."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
import torch
from headway_process import MPIRUN, generate
from process_tree import children_of, is_alive, wait_until
from tiny_model import VOCAB, write_model

import headway
from headway import LLM, SamplingParams

SMOLLM2 = pathlib.Path(__file__).resolve().parents[2] / ".cache" / "models" / "SmolLM2-135M-Instruct"
GREEDY = SamplingParams(temperature=0, max_tokens=12)
PROMPTS = ["The three primary colours are", [504, 1296, 3003], "Water boils at a temperature of about one hundred"]
LIMIT = 60

SCRIPT = """
import json, os, sys, headway
def say(text):
    os.write(1, (text + "\\n").encode())  # in one piece, which a launcher does not mix with another rank's

with headway.LLM(sys.argv[1], **json.loads(sys.argv[2])) as llm:
    say("ready")
    try:
        params = headway.SamplingParams(temperature=0, ignore_eos=True, max_tokens=int(sys.argv[3]))
        for output in llm.generate([[5, 17, 301, 44], [7]], params, use_tqdm=False):
            say(json.dumps(output.outputs[0].token_ids))
    except headway.Error as error:
        say(f"{type(error).__name__} {error}")
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return write_model(tmp_path_factory.mktemp("llm") / "tiny", positions=65536)


@pytest.fixture(scope="module")
def llm(tiny):
    with LLM(tiny, max_model_len=512, seed=5) as model:
        yield model


def script(tiny: pathlib.Path, tokens: int, **options) -> list[str]:
    return [sys.executable, "-c", SCRIPT, str(tiny), json.dumps(options), str(tokens)]


def environment(root: pathlib.Path) -> dict[str, str]:
    package = pathlib.Path(os.environ.get("HEADWAY_BUILD_DIR", root / "build")) / "python"
    return os.environ | {"PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"}


def ids_of(outputs: list[headway.RequestOutput]) -> list[list[int]]:
    return [output.outputs[0].token_ids for output in outputs]


@pytest.mark.parametrize("ranks", (1, 2))
def test_smollm2_says_what_generate_and_transformers_say(ranks):
    from transformers import Qwen2ForCausalLM

    with LLM(SMOLLM2, tensor_parallel_size=ranks, dtype=torch.float32, max_model_len=256) as llm:
        outputs = llm.generate(PROMPTS, GREEDY, use_tqdm=False)
    assert [output.prompt for output in outputs] == [PROMPTS[0], None, PROMPTS[2]]
    reference = Qwen2ForCausalLM.from_pretrained(SMOLLM2, dtype=torch.float32).eval()
    for output in outputs:
        completion = output.outputs[0]
        ids = output.prompt_token_ids
        expected = reference.generate(torch.tensor([ids]), max_new_tokens=12, do_sample=False)[0, len(ids):].tolist()
        assert completion.token_ids == expected
        assert (completion.finish_reason, completion.index, output.finished) == ("length", 0, True)
    command = generate(SMOLLM2, "--prompt", PROMPTS[0], "--max-tokens", "12", "--dtype", "fp32", "--tp", str(ranks))
    assert outputs[0].outputs[0].token_ids == command["token_ids"]
    assert outputs[0].outputs[0].text == command["text"]


def test_unequal_prompts_come_back_in_order(llm):
    prompts = [[3 + i, 40 + i, 90 + i][:1 + i % 3] * (1 + i) for i in range(9)]
    together = llm.generate(prompts, GREEDY, use_tqdm=False)
    assert [output.prompt_token_ids for output in together] == prompts
    assert ids_of(together) == [ids_of(llm.generate(prompt, GREEDY, use_tqdm=False))[0] for prompt in prompts]
    assert len({tuple(ids) for ids in ids_of(together)}) == len(prompts)
    assert llm.generate([], GREEDY, use_tqdm=False) == []


def test_each_prompt_may_have_parameters_of_its_own(llm):
    lengths = [3, 8, 1]
    params = [SamplingParams(temperature=0, max_tokens=length) for length in lengths]
    outputs = llm.generate([[5], [6], [7]], params, use_tqdm=False)
    assert [len(ids) for ids in ids_of(outputs)] == lengths
    with pytest.raises(headway.ArgumentError, match="1 sampling parameters are given for 2 prompts"):
        llm.generate([[5], [6]], [GREEDY])


def test_logprobs_on_request(llm):
    params = SamplingParams(temperature=0, max_tokens=5, logprobs=3, prompt_logprobs=1)
    output = llm.generate([[5, 17, 301]], params, use_tqdm=False)[0]
    completion = output.outputs[0]
    assert len(completion.logprobs) == 5
    for token, logprobs in zip(completion.token_ids, completion.logprobs, strict=True):
        assert len(logprobs) == 3 and logprobs[token].rank == 1 and logprobs[token].decoded_token is None
        assert logprobs[token].logprob == max(entry.logprob for entry in logprobs.values()) < 0
        assert sorted(entry.rank for entry in logprobs.values()) == [1, 2, 3]
    assert output.prompt_logprobs[0] is None
    assert [token in entry for token, entry in zip([17, 301], output.prompt_logprobs[1:], strict=True)] == [True, True]
    assert llm.generate([[5]], GREEDY, use_tqdm=False)[0].outputs[0].logprobs is None


def test_seeds_make_sampling_repeatable(tiny, llm):
    own = SamplingParams(temperature=1.5, max_tokens=12, seed=42)
    alone = ids_of(llm.generate([[5, 6]], own, use_tqdm=False))[0]
    assert ids_of(llm.generate([[9], [5, 6]], own, use_tqdm=False))[1] == alone
    free = SamplingParams(temperature=1.5, max_tokens=12, n=2)
    runs = []
    for seed in (1, 1, 2):
        with LLM(tiny, max_model_len=512, seed=seed) as other:
            runs.append([output.token_ids for output in other.generate([[5, 6]], free, use_tqdm=False)[0].outputs])
    assert runs[0] == runs[1] != runs[2] and runs[0][0] != runs[0][1]


def test_stop_tokens_and_errors_by_name(llm):
    first = ids_of(llm.generate([[5]], GREEDY, use_tqdm=False))[0]
    params = SamplingParams(temperature=0, max_tokens=12, stop_token_ids=[first[2]])
    completion = llm.generate([[5]], params, use_tqdm=False)[0].outputs[0]
    assert completion.token_ids == first[:first.index(first[2]) + 1]
    assert (completion.finish_reason, completion.stop_reason) == ("stop", first[2])


@pytest.mark.parametrize("options, named", [
    ({"temperature": -1}, "temperature is -1"), ({"top_k": -2}, "top_k is -2"), ({"max_tokens": 0}, "max_tokens is 0"),
    ({"n": 0}, "n is 0"), ({"logprobs": 21}, "logprobs is 21"), ({"temperature": "hot"}, "temperature is 'hot'"),
    ({"max_tokens": None}, "max_tokens is None; it must be int"), ({"stop_token_ids": [2**40]}, "stop_token_ids is"),
    ({"logit_bias": {"5": 1.0}}, "logit_bias is"), ({"stop_token_ids": 5}, "stop_token_ids is 5"),
])
def test_parameters_out_of_range_are_refused(options, named):
    with pytest.raises(headway.ArgumentError, match=named):
        SamplingParams(**options)


def test_seed_minus_one_is_none(llm):
    assert SamplingParams(seed=-1).to_native(7).sampling.seed == 7


def test_prompt_logprobs_of_one_token(llm):
    output = llm.generate([[5]], SamplingParams(max_tokens=1, prompt_logprobs=1), use_tqdm=False)[0]
    assert output.prompt_logprobs == [None]


def test_a_closed_object_says_so(tiny):
    model = LLM(tiny, max_model_len=512)
    model.close()
    with pytest.raises(headway.Error, match="closed"):
        model.generate([[5]])
    with pytest.raises(headway.Error, match="closed"):
        _ = model.max_model_len


RELAY = '''
import json, os, sys, headway
def say(text):
    os.write(1, (text + "\\n").encode())  # in one piece, which a launcher does not mix with another rank's

llm = headway.LLM(sys.argv[1], max_model_len=512)
params = headway.SamplingParams(temperature=0, max_tokens=4)
for prompts in ([[5]], 5, [[6]]):
    try:
        say(json.dumps([o.outputs[0].token_ids for o in llm.generate(prompts, params, use_tqdm=False)]))
    except Exception as error:
        say(type(error).__name__)
'''


def test_a_mistake_on_rank_0_reaches_the_other_ranks_in_its_place(root, tiny, llm):
    done = subprocess.run([*MPIRUN, "-np", "2", sys.executable, "-c", RELAY, str(tiny)], env=environment(root),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    params = SamplingParams(temperature=0, max_tokens=4)
    first, last = (json.dumps(ids_of(llm.generate([[token]], params, use_tqdm=False))) for token in (5, 6))
    assert sorted(done.stdout.splitlines()) == sorted([first, first, last, last, "TypeError", "Error"]), done.stderr


def test_unknown_parameters_are_refused():
    with pytest.raises(TypeError, match="best_of"):
        SamplingParams(best_of=2)


@pytest.mark.parametrize("prompt, named", [
    ([], "prompt 1: the prompt has no tokens"), ([VOCAB], f"prompt 1: .*{VOCAB}"),
    ([5279552648203111001], "5279552648203111001"),
    ([-1], "-1"), ([1.5], "1.5"), ([7] * 600, "600"), ("text", "only token ids work"),
])
def test_bad_prompts_are_refused_and_leave_nothing_behind(llm, prompt, named):  # Fault cases E11, E12, F09.
    with pytest.raises(headway.ArgumentError, match=named):
        llm.generate([[5], prompt], GREEDY, use_tqdm=False)
    assert not llm._job.generator.has_unfinished()
    assert len(ids_of(llm.generate([[5]], GREEDY, use_tqdm=False))[0]) == 12


def test_layouts_and_folders_are_refused_by_name(tiny, tmp_path):
    with pytest.raises(headway.ConfigError, match="4 query heads over 5 ranks"):
        LLM(tiny, tensor_parallel_size=5, attention_tensor_parallel_size=5)
    with pytest.raises(headway.ConfigError, match="int8"):
        LLM(tiny, dtype="int8")
    with pytest.raises(headway.CheckpointError, match="absent"):
        LLM(tmp_path / "absent")
    (tmp_path / "config.json").write_text((tiny / "config.json").read_text())
    with pytest.raises(headway.CheckpointError, match="safetensors"):
        LLM(tmp_path, tensor_parallel_size=2)


@pytest.mark.parametrize("starter", ([], [*MPIRUN, "-np", "2"],
                                     [sys.executable, "-m", "torch.distributed.run", "--standalone", "--no-python",
                                      "--nproc-per-node", "2"]), ids=("plain", "mpirun", "torchrun"))
def test_every_launch_gives_the_tokens_of_one_rank(root, tiny, llm, starter):
    options = {} if starter else {"tensor_parallel_size": 2}
    done = subprocess.run([*starter, *script(tiny, 8, max_model_len=512, **options)], env=environment(root),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=2 * LIMIT)
    assert done.returncode == 0, done.stderr
    params = SamplingParams(temperature=0, ignore_eos=True, max_tokens=8)
    expected = [json.dumps(ids) for ids in ids_of(llm.generate([[5, 17, 301, 44], [7]], params, use_tqdm=False))]
    printed = done.stdout.splitlines()
    assert sorted(printed) == sorted((["ready"] + expected) * (2 if starter else 1)), done.stderr


@pytest.fixture
def endless(root, tiny):
    """A script on two ranks of its own, in the midst of a long run."""
    process = subprocess.Popen(script(tiny, 60000, tensor_parallel_size=2, kv_blocks=8192), env=environment(root),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n", process.communicate()
    ranks = children_of(process.pid)
    assert len(ranks) == 1
    time.sleep(0.5)
    yield process, ranks[0]
    process.kill()
    process.communicate()


@pytest.mark.parametrize("ending", (signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
def test_started_ranks_end_with_the_script(endless, ending):
    process, rank = endless
    process.send_signal(ending)
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == -ending
    wait_until(lambda: not is_alive(rank))
    assert ("KeyboardInterrupt" in errors) == (ending == signal.SIGINT)


def test_a_rank_that_dies_is_an_exception(endless):
    process, rank = endless
    os.kill(rank, signal.SIGKILL)
    printed, errors = process.communicate(timeout=LIMIT)
    assert printed.startswith("CommunicationError"), errors
    assert process.returncode == 0, errors


def test_ctrl_c_leaves_the_object_usable(llm):
    before = ids_of(llm.generate([[5]], GREEDY, use_tqdm=False))
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            while True:
                llm.generate([[5], [6]], SamplingParams(temperature=0, ignore_eos=True, max_tokens=500), use_tqdm=False)
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert not llm._job.generator.has_unfinished()
    assert ids_of(llm.generate([[5]], GREEDY, use_tqdm=False)) == before


def test_a_progress_bar_counts_the_prompts(llm, capsys):
    llm.generate([[5], [6], [7]], GREEDY)
    assert "3/3" in capsys.readouterr().err
