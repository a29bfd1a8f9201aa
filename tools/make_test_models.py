"""Writes small random Qwen2 checkpoints and what Hugging Face transformers computes from them.

usage: make_test_models.py FOLDER

Each FOLDER/<name>/ is a checkpoint with beside it
  reference.json    prompts, the greedy tokens after each; the same with weights rounded to bf16, computed in fp32, with
                    each token's log-probability and its lead over the runner-up; the long prompt
  reference.logits  safetensors with "logits" [3, vocab]: fp32, after positions 1, 100 and 400 of the long prompt
Does nothing where FOLDER is up to date. Weights are scaled so that logits are not flat, and prompts are chosen so that
every greedy token wins clearly: a right engine cannot pick another one by rounding.
"""

import hashlib
import json
import os
import pathlib
import shutil
import sys
import warnings
import zlib
from dataclasses import dataclass, field

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import Qwen2Config, Qwen2ForCausalLM

POSITIONS = (1, 100, 400)
PROMPT_LENGTHS = (1, 7, 16, 33, 90)
CANDIDATES = 24
NEW_TOKENS = 64
CLEAR_GAP = 0.005


@dataclass(frozen=True)
class Shape:
    """A model as the tests know it; config.json says what the name does not."""

    name: str
    q_heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    hidden: int = 0
    layers: int = 2
    vocab: int = 320
    tied: bool = False
    shards: int = 1
    config: dict = field(default_factory=dict)

    def config_json(self) -> dict:
        hidden = self.hidden or self.q_heads * self.head_dim
        explicit = {"head_dim": self.head_dim} if hidden != self.q_heads * self.head_dim else {}
        return {
            "architectures": ["Qwen2ForCausalLM"],
            "model_type": "qwen2",
            "hidden_size": hidden,
            "intermediate_size": self.intermediate,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.q_heads,
            "num_key_value_heads": self.kv_heads,
            **explicit,
            "vocab_size": self.vocab,
            "hidden_act": "silu",
            "max_position_embeddings": 512,
            "rms_norm_eps": 1e-6,
            "rope_theta": 1e6,
            "tie_word_embeddings": self.tied,
            "torch_dtype": "float32",
            **self.config,
        }


SHAPES = (
    Shape("q4kv2", 4, 2, 16, 128),
    Shape("q4kv2-tied", 4, 2, 16, 128, tied=True),
    Shape("q12kv2", 12, 2, 8, 192, shards=3),
    Shape("q12kv2-tied", 12, 2, 8, 192, vocab=321, tied=True),
    Shape("q28kv4", 28, 4, 4, 224),
    Shape("q28kv4-tied", 28, 4, 4, 224, tied=True),
    Shape("q9kv3", 9, 3, 8, 150, vocab=321),
    Shape("q9kv3-tied", 9, 3, 8, 150, vocab=321, tied=True),
    Shape("q14kv2", 14, 2, 64, 4864, hidden=112),
    Shape("q14kv2-tied", 14, 2, 8, 364, tied=True),
    Shape("q8kv4-head128", 8, 4, 128, 101, hidden=64),
    Shape("q4kv1", 4, 1, 16, 128),
    Shape("q4kv2-4layers", 4, 2, 16, 128, layers=4),
)


def random_weight(name: str, shape: torch.Size, tied: bool, generator: torch.Generator) -> torch.Tensor:
    """Values whose products stay near 1 in size, so that no layer is drowned by another."""
    values = torch.randn(shape, generator=generator)
    if "norm" in name:
        return 1.0 + 0.2 * values
    if name.endswith("bias"):
        return 0.5 * values
    if "embed_tokens" in name:
        return values * (0.9 / shape[1] ** 0.5 if tied else 1.0)
    gain = 0.9 if "lm_head" in name else 1.2
    return values * gain / shape[1] ** 0.5


def write_checkpoint(folder: pathlib.Path, shape: Shape) -> None:
    folder.mkdir(parents=True)
    config = shape.config_json()
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    generator = torch.Generator().manual_seed(zlib.crc32(shape.name.encode()))
    model = Qwen2ForCausalLM(Qwen2Config.from_dict(config))
    tensors = {name: random_weight(name, parameter.shape, shape.tied, generator)
               for name, parameter in model.named_parameters()}
    save_tensors(folder, tensors, shape.shards)


def save_tensors(folder: pathlib.Path, tensors: dict[str, torch.Tensor], shards: int = 1) -> None:
    if shards == 1:
        save_file(tensors, folder / "model.safetensors")
        return
    names = sorted(tensors)
    weight_map = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05d}-of-{shards:05d}.safetensors"
        part = names[shard::shards]
        save_file({name: tensors[name] for name in part}, folder / file)
        weight_map |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}, indent=2) + "\n")


def load(folder: pathlib.Path, weights: torch.dtype = torch.float32) -> Qwen2ForCausalLM:
    """The model with its weights rounded to a dtype; it computes in fp32."""
    model = Qwen2ForCausalLM.from_pretrained(folder, dtype=weights, attn_implementation="eager")
    return model.eval().float()


@dataclass
class Greedy:
    """Per sequence and step: the token, its log-probability, and its lead over the runner-up in logits."""

    tokens: torch.Tensor
    logprobs: torch.Tensor
    gaps: torch.Tensor


def greedy(model: Qwen2ForCausalLM, prompts: torch.Tensor) -> Greedy:
    steps = []
    inputs, cache = prompts, None
    for _ in range(NEW_TOKENS):
        output = model(inputs, past_key_values=cache, use_cache=True)
        cache = output.past_key_values
        logits = output.logits[:, -1].float()
        top = logits.topk(2)
        inputs = top.indices[:, :1]
        steps.append((inputs[:, 0], logits.log_softmax(-1).gather(1, inputs)[:, 0], top.values[:, 0] - top.values[:, 1]))
    return Greedy(*(torch.stack(column, dim=1) for column in zip(*steps)))


def clear_prompt(model: Qwen2ForCausalLM, length: int, generator: torch.Generator) -> tuple[list[int], Greedy]:
    """Of random prompts, the one whose continuation is clear and has most distinct tokens."""
    candidates = torch.randint(0, model.config.vocab_size, (CANDIDATES, length), generator=generator)
    result = greedy(model, candidates)
    clear = result.gaps.min(dim=1).values
    variety = torch.tensor([len(set(tokens.tolist())) for tokens in result.tokens])
    best = int(torch.where(clear >= CLEAR_GAP, variety, -1).argmax())
    if clear[best] < CLEAR_GAP:
        raise SystemExit(f"no prompt of {length} tokens has clear greedy tokens; the best gap is {clear.max():.4f}")
    row = slice(best, best + 1)
    return candidates[best].tolist(), Greedy(result.tokens[row], result.logprobs[row], result.gaps[row])


def long_prompt(vocab: int) -> torch.Tensor:
    return torch.randint(0, vocab, (1, POSITIONS[-1] + 1), generator=torch.Generator().manual_seed(401))


def write_logits(folder: pathlib.Path) -> None:
    model = load(folder)
    prompt = long_prompt(model.config.vocab_size)
    logits = model(prompt).logits[0, list(POSITIONS)]
    save_file({"logits": logits.contiguous()}, folder / "reference.logits")
    write_reference(folder, {"long_prompt": prompt[0].tolist(), "positions": list(POSITIONS)})


def write_reference(folder: pathlib.Path, content: dict) -> None:
    path = folder / "reference.json"
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(before | content) + "\n")


def write_greedy(folder: pathlib.Path) -> None:
    generator = torch.Generator().manual_seed(64)
    model = load(folder)
    prompts, results = zip(*(clear_prompt(model, length, generator) for length in PROMPT_LENGTHS))
    rounded = load(folder, torch.bfloat16)
    rounded_results = [greedy(rounded, torch.tensor([prompt])) for prompt in prompts]
    write_reference(folder, {
        "prompts": prompts,
        "greedy": [result.tokens[0].tolist() for result in results],
        "bf16_weights": [{"tokens": result.tokens[0].tolist(), "logprobs": result.logprobs[0].tolist(),
                  "gaps": result.gaps[0].tolist()} for result in rounded_results],
    })


@dataclass(frozen=True)
class Variant:
    """A checkpoint of SHAPES with another config, other names or other tensors."""

    name: str
    base: str
    config: dict = field(default_factory=dict)
    without: tuple[str, ...] = ()  # keys left out of config.json
    drop_prefix: bool = False      # store "layers..." for "model.layers..."
    head: str = "keep"             # "drop" lm_head.weight, or "copy" the embedding to it
    stored: torch.dtype = torch.float32
    shards: int = 1
    strays: bool = False           # files of other values, named as weights often are, beside those of the index
    reference: bool = True         # whether transformers computes logits; the others equal another folder or fail


YARN = {"factor": 4.0, "original_max_position_embeddings": 128}
VARIANTS = (
    Variant("rope-linear", "q4kv2", {"rope_scaling": {"type": "linear", "factor": 4.0}}),
    Variant("rope-dynamic", "q4kv2", {"rope_scaling": {"type": "dynamic", "factor": 2.0},
                                      "max_position_embeddings": 256}),
    Variant("rope-yarn", "q4kv2", {"rope_scaling": {"rope_type": "yarn"} | YARN}),
    Variant("rope-yarn-type", "q4kv2", {"rope_scaling": {"type": "yarn"} | YARN}, reference=False),
    Variant("rope-yarn-conflict", "q4kv2", {"rope_scaling": {"type": "linear", "rope_type": "yarn"} | YARN},
            reference=False),
    Variant("rope-unknown", "q4kv2", {"rope_scaling": {"rope_type": "spiral", "factor": 4.0}}, reference=False),
    Variant("rope-null", "q4kv2", {"rope_scaling": None}, reference=False),
    Variant("rope-parameters", "q4kv2", {"rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}},
            without=("rope_theta",), reference=False),
    Variant("rope-theta-1e4", "q4kv2", {"rope_theta": 1e4}),
    Variant("window-off", "q4kv2", {"use_sliding_window": False, "sliding_window": 8, "max_window_layers": 0},
            reference=False),
    Variant("window-unsaid", "q4kv2", {"sliding_window": 8, "max_window_layers": 0}, reference=False),
    Variant("window-from-2", "q4kv2-4layers", {"use_sliding_window": True, "sliding_window": 8,
                                               "max_window_layers": 2}),
    Variant("window-from-4", "q4kv2-4layers", {"use_sliding_window": True, "sliding_window": 8,
                                               "max_window_layers": 4}, reference=False),
    Variant("window-layer-types", "q4kv2-4layers",
            {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 4,
             "layer_types": ["sliding_attention", "full_attention", "full_attention", "sliding_attention"]}),
    Variant("tied-head-copied", "q12kv2-tied", head="copy", reference=False),
    Variant("tied-no-prefix", "q12kv2-tied", drop_prefix=True, reference=False),
    Variant("untied-no-prefix", "q4kv2", drop_prefix=True, head="drop", reference=False),
    Variant("untied-no-head", "q4kv2", head="drop", reference=False),
    Variant("tie-unsaid", "q4kv2", without=("tie_word_embeddings",), reference=False),
    Variant("tie-unsaid-no-head", "q4kv2", without=("tie_word_embeddings",), head="drop", reference=False),
    Variant("head-dim-null", "q4kv2", {"head_dim": None}, reference=False),
    Variant("dtype-bfloat16", "q4kv2", {"torch_dtype": "torch.bfloat16"}, reference=False),
    Variant("dtype-unsaid", "q4kv2", without=("torch_dtype",), reference=False),
    Variant("dtype-unsaid-bf16", "q4kv2", without=("torch_dtype",), stored=torch.bfloat16, reference=False),
    Variant("dtype-unsaid-fp16", "q4kv2", without=("torch_dtype",), stored=torch.float16, reference=False),
    Variant("kv-heads-null", "q4kv2", {"num_key_value_heads": None}, reference=False),
    Variant("kv-heads-unsaid", "q4kv2", without=("num_key_value_heads",), reference=False),
    Variant("strays", "q4kv2", shards=2, strays=True, reference=False),
)


def write_variant(folder: pathlib.Path, variant: Variant, base: pathlib.Path) -> None:
    folder.mkdir(parents=True)
    config = json.loads((base / "config.json").read_text()) | variant.config
    config = {key: value for key, value in config.items() if key not in variant.without}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    tensors = load_file(base / "model.safetensors")
    if variant.head == "drop":
        del tensors["lm_head.weight"]
    if variant.head == "copy":
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    if variant.drop_prefix:
        tensors = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
    tensors = {name: tensor.to(variant.stored) for name, tensor in tensors.items()}
    save_tensors(folder, tensors, variant.shards)
    if variant.strays:
        nines = {name: torch.full_like(tensor, 9) for name, tensor in tensors.items()}
        for stray in ("model", "consolidated"):
            save_file(nines, folder / f"{stray}.safetensors")
    if variant.reference:
        write_logits(folder)


MLP_PEAK = 70000.0  # beyond fp16, which ends at 65504


def write_fp16_overflow(folder: pathlib.Path, base: pathlib.Path) -> None:
    """`base` in fp16, with the first MLP's output weights scaled so that its outputs reach MLP_PEAK."""
    folder.mkdir(parents=True)
    down_proj = "model.layers.0.mlp.down_proj.weight"
    tensors = load_file(base / "model.safetensors")
    tensors[down_proj] *= MLP_PEAK / mlp_peak(load(base))
    save_tensors(folder, {name: tensor.half() for name, tensor in tensors.items()})
    config = json.loads((base / "config.json").read_text()) | {"torch_dtype": "float16"}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    write_logits(folder)
    if not (peak := mlp_peak(load(folder))) > 0.99 * MLP_PEAK:
        raise SystemExit(f"{folder}: the MLP's outputs reach {peak}, not {MLP_PEAK}")


def mlp_peak(model: Qwen2ForCausalLM) -> float:
    """The largest output of the first MLP over the long prompt."""
    outputs = []
    with_hook = model.model.layers[0].mlp.register_forward_hook(lambda module, inputs, output: outputs.append(output))
    model(long_prompt(model.config.vocab_size))
    with_hook.remove()
    return float(outputs[0].abs().max())


def write_fixed_logits(folder: pathlib.Path, shape: Shape, logits: list[float]) -> None:
    """An fp16 model of as many tokens that gives these logits after any prompt: its layers add nothing to an embedding
    of ones, of which the head takes the first column."""
    folder.mkdir(parents=True)
    config = shape.config_json() | {"vocab_size": len(logits), "torch_dtype": "float16"}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    parameters = Qwen2ForCausalLM(Qwen2Config.from_dict(config)).named_parameters()
    tensors = {name: torch.ones(parameter.shape) if "norm" in name or "embed" in name else torch.zeros(parameter.shape)
               for name, parameter in parameters}
    tensors["lm_head.weight"][:, 0] = torch.tensor(logits)
    save_tensors(folder, {name: tensor.half() for name, tensor in tensors.items()})


def make_all(root: pathlib.Path) -> None:
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    warnings.filterwarnings("ignore", message=".*past_key_values.*", category=FutureWarning)
    with torch.inference_mode():
        for shape in SHAPES:
            write_checkpoint(root / shape.name, shape)
            write_logits(root / shape.name)
            if shape.layers == 2:
                write_greedy(root / shape.name)
        for variant in VARIANTS:
            write_variant(root / variant.name, variant, root / variant.base)
        write_fp16_overflow(root / "fp16-overflow", root / "q4kv2")
        write_fixed_logits(root / "fp16-fixed-logits", SHAPES[0], [2.875, 11.0625, -2.4375])


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    root = pathlib.Path(sys.argv[1])
    wanted = hashlib.sha256(pathlib.Path(__file__).read_bytes() + transformers.__version__.encode()).hexdigest()
    stamp = root / "stamp"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    # Built aside and moved into place whole: a run that is cut short leaves no half of it.
    building = root.with_name(f"{root.name}.{os.getpid()}")
    try:
        make_all(building)
        (building / "stamp").write_text(wanted)
        shutil.rmtree(root, ignore_errors=True)
        building.rename(root)
    finally:
        shutil.rmtree(building, ignore_errors=True)


if __name__ == "__main__":
    main()
