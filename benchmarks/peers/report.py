"""Medians over rounds, and the table of them."""

import statistics

from peers import Timed

BASE = "Headway"
LIMIT_KEYS = ("decode_ratio", "prefill_ratio", "read_gb_per_s", "linear_gflop_per_s", "decode_limit_tokens_per_s",
              "prefill_limit_tokens_per_s")


def spread(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def results(runs: dict[str, dict[int, list[Timed]]], failed: dict[str, str], versions: dict[str, str]) -> dict:
    """By peer and batch: rates, how many times faster Headway was in the same round, and Headway's limits."""
    peers: dict[str, dict] = {}
    for name, by_batch in runs.items():
        peers[name] = {"version": versions[name], "batches": {}}
        for batch, timed in by_batch.items():
            if not timed:
                continue
            found = {"prefill": spread([run.prefill for run in timed]), "decode": spread([run.decode for run in timed])}
            base = runs.get(BASE, {}).get(batch, [])
            if base and name != BASE:
                found["headway_prefill_times"] = spread([b.prefill / t.prefill for b, t in zip(base, timed)])
                found["headway_decode_times"] = spread([b.decode / t.decode for b, t in zip(base, timed)])
            if timed[0].limits:
                found["limits"] = {key: spread([run.limits[key] for run in timed]) for key in LIMIT_KEYS}
            peers[name]["batches"][str(batch)] = found
    return {"peers": peers, "failed": failed}


def cell(found: dict | None, what: str, digits: int) -> str:
    if not found:
        return "-"
    rate, times, limits = found[what], found.get(f"headway_{what}_times"), found.get("limits")
    text = f"{rate['median']:.{digits}f} ({rate['least']:.{digits}f}-{rate['most']:.{digits}f})"
    if times:
        text += f", x{times['median']:.2f}"
    if limits:
        text += f", {limits[f'{what}_ratio']['median']:.2f} of limit"
    return text


def table(results: dict) -> str:
    lines = ["| tokens/s, median (least-most) | prefill | decode, batch 1 | decode, batch 8 |", "|---|---|---|---|"]
    for name, peer in results["peers"].items():
        one, eight = peer["batches"].get("1"), peer["batches"].get("8")
        version = "" if name.startswith(BASE) else f" {peer['version']}"
        lines.append(f"| {name}{version} | {cell(one, 'prefill', 0)} | {cell(one, 'decode', 1)} | "
                     f"{cell(eight, 'decode', 1)} |")
    machine, load = results["machine"], results["load_average"]
    lines += ["", f"x: how many times faster Headway on one rank was in the same round, median over {results['rounds']} "
              f"rounds. Prompt {results['prompt_tokens']}, {results['new_tokens']} new tokens, bf16, {machine['cores']} "
              f"cores of {machine['cpu']} ({'with' if machine['amx_bf16'] else 'without'} AMX), {results['date']}; load "
              f"average {load[0]:.1f} at the start. `{results['command']}`"]
    lines += [f"{name} did not run: {reason}" for name, reason in results["failed"].items()]
    return "\n".join(lines) + "\n"
