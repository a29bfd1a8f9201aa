"""Ids and text are those of the tokenizers library, for Qwen2's and SmolLM2's tokenizers and for one with all flags."""

import json
import pathlib
import random

import pytest
import qwen_tokenizer
import smollm2
from gguf import GGUFReader
from tokenizer_cases import CODE_SPACE, Case, assigned, random_texts, run_tool
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

SEPARATOR = "<|im_end|>"


def flags_tokenizer() -> Tokenizer:
    """A small vocabulary, and an added token for each flag and pair of flags."""
    characters = qwen_tokenizer.byte_characters()
    tokens = [*characters, "ab", "abc", "\u0120a"]
    tokenizer = Tokenizer(BPE(vocab={token: i for i, token in enumerate(tokens)},
                              merges=[("a", "b"), ("ab", "c"), ("\u0120", "a")]))
    tokenizer.normalizer = qwen_tokenizer.normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    for token in (
        AddedToken("<s>", special=True, normalized=False),
        AddedToken("<s>b", special=True, normalized=False),
        AddedToken("bc", normalized=False, single_word=True),
        AddedToken("[l]", normalized=False, lstrip=True),
        AddedToken("[r]", normalized=False, rstrip=True),
        AddedToken("[lr]", special=True, normalized=False, lstrip=True, rstrip=True),
        AddedToken("ca", normalized=False, single_word=True, lstrip=True),
        AddedToken("e\u0301", normalized=True),
        AddedToken("c\u00e9b", normalized=True, rstrip=True, single_word=True),
    ):
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    return tokenizer


def smollm2_tokenizer() -> Tokenizer:
    fields = GGUFReader(smollm2.gguf_path()).fields
    return smollm2.build_tokenizer({key: field.contents() for key, field in fields.items() if "tokenizer" in key})


def saved(name: str, reference: Tokenizer, folder: pathlib.Path) -> Case:
    reference.save(str(folder / "tokenizer.json"))
    return Case(name, reference, folder)


@pytest.fixture(scope="module")
def qwen2(tmp_path_factory) -> Case:
    return saved("qwen2", qwen_tokenizer.build(), tmp_path_factory.mktemp("qwen2"))


@pytest.fixture(scope="module")
def smollm2_case(tmp_path_factory) -> Case:
    return saved("smollm2", smollm2_tokenizer(), tmp_path_factory.mktemp("smollm2"))


@pytest.fixture(scope="module", params=["qwen2", "smollm2_case"])
def case(request) -> Case:
    return request.getfixturevalue(request.param)


def assert_same(inputs: list, answers: list, expected: list) -> None:
    different = [triple for triple in zip(inputs, answers, expected) if triple[1] != triple[2]]
    assert not different, f"{len(different)} of {len(inputs)} differ (input, ours, expected): {different[:3]}"


def test_known_ids_of_qwen2(qwen2):
    texts = ["Hello, world!", "->", "(x):\n", "123456", "e\u0301", "\u00e9", "caf\u00e9s", "cafe\u0301s"]
    ids = run_tool(qwen2.folder, "encode", texts)
    # Fault case F05.
    assert ids[:4] == [[9707, 11, 1879, 0], [405], [2075, 982], [16, 17, 18, 19, 20, 21]]
    # Fault case F07.
    assert ids[4] == ids[5] and ids[6] == ids[7]


def test_merges_as_text_give_the_same_ids(qwen2, tmp_path):
    # Fault case F04; the library itself saves pairs.
    content = json.loads((qwen2.folder / "tokenizer.json").read_text(encoding="utf-8"))
    assert isinstance(content["model"]["merges"][0], list)
    content["model"]["merges"] = [" ".join(pair) for pair in content["model"]["merges"]]
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    texts = random_texts(1000, seed=3)
    assert run_tool(tmp_path, "encode", texts) == run_tool(qwen2.folder, "encode", texts)


def test_random_texts(case):
    texts = random_texts(20_000, seed=1)
    assert_same(texts, run_tool(case.folder, "encode", texts), case.expected(texts))


def test_random_texts_with_special_tokens_as_text(case):
    texts = random_texts(3000, seed=2)
    case.reference.encode_special_tokens = True
    try:
        expected = case.expected(texts)
    finally:
        case.reference.encode_special_tokens = False
    assert_same(texts, run_tool(case.folder, "encode_plain", texts), expected)


def assert_same_in_bulk(case: Case, texts: list[str]) -> None:
    """As one long text, in which an added token parts what is before it from what is after it."""
    chunks = [texts[i : i + 2048] for i in range(0, len(texts), 2048)]
    joined = [SEPARATOR.join(chunk) for chunk in chunks]
    for chunk, ours, theirs in zip(chunks, run_tool(case.folder, "encode", joined), case.expected(joined)):
        if ours != theirs:
            assert_same(chunk, run_tool(case.folder, "encode", chunk), case.expected(chunk))


def test_whole_code_space(case):
    """Every code point alone and between letters."""
    assert_same_in_bulk(case, [text for c in CODE_SPACE for text in (c, f"a{c}b")])


def test_every_character_in_company(case):
    """Every character that Unicode 14 knows beside what contracts, spaces, composes, reorders and counts."""
    assert_same_in_bulk(case, [f"'{c} {c}{c} {c}\u0323\u0301 \n{c}1" for c in assigned(CODE_SPACE)])


def test_all_flags_of_added_tokens(tmp_path):
    case = saved("flags", flags_tokenizer(), tmp_path)
    pieces = ["a", "b", "c", " ", "\u3000", "\n", "_", "e", "\u0301", "\u00e9", "<s>", "bc", "ca", "[l]", "[r]", "[lr]", "1"]
    choose = random.Random(6)
    texts = ["".join(choose.choice(pieces) for _ in range(choose.randint(0, 9))) for _ in range(20_000)]
    assert_same(texts, run_tool(case.folder, "encode", texts), case.expected(texts))
    case.reference.encode_special_tokens = True
    assert_same(texts, run_tool(case.folder, "encode_plain", texts), case.expected(texts))


def test_decode(case):
    """Any ids give the library's text, and the pieces of a stream join to it."""
    choose = random.Random(5)
    size = case.reference.get_vocab_size()
    bytes_alone = [case.reference.token_to_id(c) for c in qwen_tokenizer.byte_characters()]
    pools = [range(size + 40), [i for i in bytes_alone if i is not None]]
    ids = [[choose.choice(choose.choice(pools)) for _ in range(choose.randint(0, 30))] for _ in range(5000)]
    expected = [case.reference.decode(one, skip_special_tokens=False) for one in ids]
    answers = run_tool(case.folder, "decode", ids)
    assert_same(ids, [whole for whole, _ in answers], expected)
    assert_same(ids, ["".join(pieces) for _, pieces in answers], expected)
