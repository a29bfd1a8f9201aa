"""Runs Headway and its peers in turns on one random checkpoint of the Qwen2-0.5B shape; writes a table and a plot.

usage: run.py [--peers NAME,...] [--rounds N] [--new-tokens N] [--output FOLDER]

Installs each peer by name into an environment of its own below .cache/peers, which takes a while the first time; a peer
that cannot be installed or does not run is named in the table with the reason. In every round each peer runs once, in
rotated order, so that whatever else the machine does meets all alike; figures are medians over the rounds.
"""

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable

import environments
import report
from peers import Driven, Headway, PeerFailed, Timed

CHECKPOINT = environments.CACHE / "qwen2-0.5b-bf16"
GGUF = environments.CACHE / "qwen2-0.5b-bf16.gguf"
HERE = pathlib.Path(__file__).resolve().parent
BINARY = environments.ROOT / "build" / "bin" / "headway"
CORES = len(os.sched_getaffinity(0))


def tool(environment: str, script: str, *arguments: object) -> None:
    subprocess.run([environments.python_of(environment), HERE / script, *map(str, arguments)], check=True,
                   stdin=subprocess.DEVNULL)


def ensure_checkpoint() -> None:
    if not (CHECKPOINT / "model.safetensors").exists():
        environments.install("transformers")
        tool("transformers", "checkpoint.py", CHECKPOINT)


def llama_cpp() -> Driven:
    environments.install("llama.cpp")
    if not GGUF.exists():
        tool("llama.cpp", "gguf_checkpoint.py", CHECKPOINT, GGUF)
    return Driven("llama.cpp", "llama.cpp", "llama_cpp_driver.py", [str(GGUF), str(CORES)], (1,))


def transformers(name: str, threads: int, ranks: int, batches: tuple[int, ...]) -> Driven:
    environments.install("transformers")
    return Driven(name, "transformers", "transformers_driver.py", [str(CHECKPOINT), str(threads), str(ranks)], batches)


def vllm(name: str, ranks: int) -> Driven:
    environments.install("vllm")
    half = CORES // 2
    cores = f"0-{CORES - 1}" if ranks == 1 else f"0-{half - 1}|{half}-{CORES - 1}"
    return Driven(name, "vllm", "vllm_driver.py", [str(CHECKPOINT), str(ranks)], (1, 8),
                  {"VLLM_CPU_KVCACHE_SPACE": "2", "VLLM_CPU_OMP_THREADS_BIND": cores})


PEERS: dict[str, Callable[[], Headway | Driven]] = {
    "Headway": lambda: Headway("Headway", BINARY, CHECKPOINT, []),
    "Headway tp 2": lambda: Headway("Headway tp 2", BINARY, CHECKPOINT, ["--tp", "2", "--threads", str(CORES // 2)]),
    "llama.cpp": llama_cpp,
    "transformers": lambda: transformers("transformers", CORES, 1, (1, 8)),
    "transformers tp_plan 2": lambda: transformers("transformers tp_plan 2", CORES // 2, 2, (1,)),
    "vLLM": lambda: vllm("vLLM", 1),
    "vLLM tp 2": lambda: vllm("vLLM tp 2", 2),
}


def start(names: list[str]) -> tuple[list[Headway | Driven], dict[str, str]]:
    started, failed = [], {}
    for name in names:
        print(f"starting {name}", file=sys.stderr)
        try:
            started.append(PEERS[name]())
        except (PeerFailed, subprocess.CalledProcessError, OSError) as error:
            failed[name] = str(error)
            print(f"  {error}", file=sys.stderr)
    return started, failed


def run_rounds(peers: list, failed: dict[str, str], arguments: argparse.Namespace) -> dict[str, dict[int, list[Timed]]]:
    """The runs of every peer by batch. A first short run of each batch warms up."""
    runs: dict[str, dict[int, list[Timed]]] = {peer.name: {batch: [] for batch in peer.batches} for peer in peers}
    for number in range(-1, arguments.rounds):
        turn = max(number, 0) % len(peers)
        for peer in peers[turn:] + peers[:turn]:
            if peer.name in failed or (number < 0 and isinstance(peer, Headway)):
                continue
            for batch in peer.batches:
                work = {"batch": batch, "prompt_tokens": arguments.prompt_tokens, "seed": number,
                        "new_tokens": 4 if number < 0 else arguments.new_tokens}
                try:
                    timed = peer.run(work)
                except (PeerFailed, subprocess.TimeoutExpired, OSError) as error:
                    failed[peer.name] = str(error)
                    print(f"  {peer.name}: {error}", file=sys.stderr)
                    break
                if number >= 0:
                    runs[peer.name][batch].append(timed)
                    print(f"round {number + 1}, {peer.name}, batch {batch}: prefill {timed.prefill:.0f}, "
                          f"decode {timed.decode:.1f} tokens/s", file=sys.stderr)
    return runs


def machine() -> dict:
    information = pathlib.Path("/proc/cpuinfo").read_text()
    name = next((line.split(":")[1].strip() for line in information.splitlines() if line.startswith("model name")), "?")
    flags = next((line for line in information.splitlines() if line.startswith("flags")), "").split()
    return {"cpu": name, "cores": CORES, "amx_bf16": "amx_bf16" in flags, "avx512_bf16": "avx512_bf16" in flags}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default=",".join(PEERS), help="names of the table, joined by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prompt-tokens", type=int, default=512)
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--output", type=pathlib.Path, default=environments.CACHE / "results")
    arguments = parser.parse_args()
    names = arguments.peers.split(",")
    if unknown := [name for name in names if name not in PEERS]:
        parser.error(f"unknown peers {unknown}; known: {list(PEERS)}")
    ensure_checkpoint()
    peers, failed = start(names)
    load_before = os.getloadavg()[0]
    try:
        runs = run_rounds(peers, failed, arguments)
    finally:
        for peer in peers:
            peer.close()
    results = report.results(runs, failed, {peer.name: peer.version for peer in peers})
    results |= {"machine": machine(), "date": datetime.date.today().isoformat(), "rounds": arguments.rounds,
                "prompt_tokens": arguments.prompt_tokens, "new_tokens": arguments.new_tokens,
                "load_average": [load_before, os.getloadavg()[0]],
                "command": " ".join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]])}
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "peers.json").write_text(json.dumps(results, indent=1) + "\n")
    table = report.table(results)
    (arguments.output / "peers.md").write_text(table)
    environments.install("plot")
    tool("plot", "plot.py", arguments.output / "peers.json", arguments.output / "peers.svg")
    print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
