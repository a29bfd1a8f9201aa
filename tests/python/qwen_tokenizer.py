"""Builds Qwen2's tokenizer from the ranks that the package dashscope carries.

The file lists the bytes of every token in the order in which training made them. A token's merge is the pair that is
left when its bytes are encoded with the merges before it.
"""

import base64
import importlib.util
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE

PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def byte_characters() -> list[str]:
    """The character that a byte-level vocabulary writes for each byte."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def read_ranks() -> list[bytes]:
    spec = importlib.util.find_spec("dashscope")
    if spec is None or spec.origin is None:
        raise SystemExit("the package dashscope is not installed; run tools/setup.sh")
    path = pathlib.Path(spec.origin).parent / "resources" / "qwen.tiktoken"
    entries = [line.split() for line in path.read_bytes().splitlines() if line]
    tokens = [base64.b64decode(token) for token, _ in entries]
    assert [int(rank) for _, rank in entries] == list(range(len(tokens)))
    return tokens


def merge_of(token: bytes, rank: int, ranks: dict[bytes, int]) -> tuple[bytes, bytes]:
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        candidates = [(ranks.get(left + right, rank), i) for i, (left, right) in enumerate(zip(parts, parts[1:]))]
        best, i = min(candidates)
        assert best < rank, f"{token!r} cannot be merged"
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts[0], parts[1]


def build() -> Tokenizer:
    tokens = read_ranks()
    ranks = {token: rank for rank, token in enumerate(tokens)}
    characters = byte_characters()

    def text(token: bytes) -> str:
        return "".join(characters[byte] for byte in token)

    merges = [merge_of(token, rank, ranks) for rank, token in enumerate(tokens) if len(token) > 1]
    tokenizer = Tokenizer(BPE(vocab={text(token): rank for token, rank in ranks.items()},
                              merges=[(text(left), text(right)) for left, right in merges]))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in SPECIAL_TOKENS])
    return tokenizer
