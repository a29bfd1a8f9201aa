"""Bars of the peers' rates. Runs with the plot environment's interpreter.

usage: plot.py RESULTS.json PLOT.svg
"""

import json
import pathlib
import sys

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402  after the backend is chosen

PANELS = (("1", "prefill", "prefill, batch 1"), ("1", "decode", "decode, batch 1"), ("8", "decode", "decode, batch 8"))


def draw(axes, peers: dict, batch: str, what: str, title: str) -> None:
    rows = [(name, peer["batches"][batch]) for name, peer in peers.items() if batch in peer["batches"]]
    medians = [found[what]["median"] for _, found in rows]
    errors = [[found[what]["median"] - found[what]["least"] for _, found in rows],
              [found[what]["most"] - found[what]["median"] for _, found in rows]]
    colours = ["#0072b2" if name.startswith("Headway") else "#999999" for name, _ in rows]
    axes.barh([name for name, _ in rows], medians, xerr=errors, color=colours, capsize=3)
    for position, (_, found) in enumerate(rows):
        if "limits" in found:
            limit = found["limits"][f"{what}_limit_tokens_per_s"]["median"]
            axes.plot([limit, limit], [position - 0.4, position + 0.4], color="#d55e00")
    axes.invert_yaxis()
    axes.set_title(title)
    axes.set_xlabel("tokens/s (orange: the machine's limit)")


def main() -> None:
    results = json.loads(pathlib.Path(sys.argv[1]).read_text())
    figure, panels = pyplot.subplots(1, len(PANELS), figsize=(15, 4))
    for axes, (batch, what, title) in zip(panels, PANELS):
        draw(axes, results["peers"], batch, what, title)
    figure.tight_layout()
    figure.savefig(sys.argv[2])


if __name__ == "__main__":
    main()
