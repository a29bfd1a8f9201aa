"""The page of `headway plan --html` in headless Chromium: what it draws, redraws and tells."""

import html
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from headway_process import BINARY
from plan_process import plan_json, run_plan, write_model

DARK = ["--blink-settings=preferredColorScheme=0"]

# Moves the sliders through every layout, then the focus and the pointer through the ranks, and writes down what it saw.
DRIVER = """
const row_texts = () => [...document.querySelectorAll("#ranks tbody tr")].map((row) =>
  [...row.querySelectorAll("small, th")].map((cell) => cell.textContent));
const move = (id, value) => {
  const slider = document.getElementById(id);
  slider.value = value;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
};
const details = () => document.getElementById("details").textContent;
const width = (row, column) => document.querySelectorAll("#ranks tbody tr")[row].cells[column]
  .querySelector(".part").getBoundingClientRect().width;
(async () => {
  const summary = () => document.getElementById("summary").textContent;
  const seen = { errors: page_errors, first: { rows: row_texts(), summary: summary() }, layouts: {} };
  const tp = document.getElementById("tp");
  const attn = document.getElementById("attn-tp");
  for (let i = 0; i <= tp.max; ++i) {
    move("tp", i);
    for (let j = 0; j <= attn.max; ++j) {
      move("attn-tp", j);
      const sizes = ["tp-value", "attn-tp-value"].map((id) => document.getElementById(id).textContent);
      seen.layouts[sizes.join(":")] = { rows: row_texts(), summary: summary(),
        copies: [...document.querySelectorAll("#ranks tbody tr")].map((row) =>
          row.cells[2].querySelectorAll(".part.copy").length),
        spoken: tp.getAttribute("aria-valuetext") };
    }
  }
  const rows = document.querySelectorAll("#ranks tbody tr");
  rows[0].focus();
  seen.focused = [details()];
  for (const key of ["ArrowDown", "ArrowDown", "End", "Home"]) {
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    seen.focused.push(details());
  }
  rows[5].dispatchEvent(new MouseEvent("mouseenter"));
  seen.hovered = details();
  seen.widths = [width(1, 1), width(0, 1)];
  seen.requests = performance.getEntriesByType("resource").map((entry) => entry.name);
  seen.background = getComputedStyle(document.body).backgroundColor;
  seen.violations = (await axe.run()).violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(" ")}`);
  const result = document.createElement("pre");
  result.id = "seen";
  result.textContent = JSON.stringify(seen);
  document.body.append(result);
})();
"""


@pytest.fixture(scope="module")
def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None and os.environ.get("CI"):
        pytest.fail("no Chromium; tools/setup.sh --dev installs it")
    if found is None:
        pytest.skip("no Chromium on this machine; tools/setup.sh --dev installs it")
    return found


def run_chromium(chromium: str, folder: pathlib.Path, *options: str) -> str:
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1400,1300",
               f"--user-data-dir={folder / 'profile'}", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def axe_source() -> str:
    spec = importlib.util.find_spec("axe_playwright_python")
    assert spec is not None and spec.origin is not None, "run tools/setup.sh"
    return (pathlib.Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, pathlib.Path]:
    """The page of Qwen2-7B's shape on 8 ranks, and the model's folder."""
    folder = tmp_path_factory.mktemp("page")
    model = write_model(folder, "seven")
    path = folder / "plan.html"
    result = run_plan(model, "--tp", "8", "--rank-memory", "24GiB", "--max-seqs", "16", "--html", str(path))
    assert result.returncode == 0, result.stderr
    return path, model


def look(chromium: str, page: pathlib.Path, *options: str) -> dict:
    """Runs the driver in a copy of the page and returns what it saw."""
    text = page.read_text(encoding="utf-8")
    errors = "<script>const page_errors = []; onerror = (message) => page_errors.push(message);</script>"
    scripts = f"<script>{axe_source()}</script><script>{DRIVER}</script>"
    driven = page.with_name("driven.html")
    driven.write_text(text.replace("<head>", f"<head>{errors}", 1).replace("</body>", f"{scripts}</body>", 1),
                      encoding="utf-8")
    dom = run_chromium(chromium, page.parent, "--virtual-time-budget=20000", "--dump-dom", *options, driven.as_uri())
    found = re.search(r'<pre id="seen">(.*?)</pre>', dom, re.DOTALL)
    assert found, dom[-2000:]
    return json.loads(html.unescape(found.group(1)))


@pytest.fixture(scope="module")
def seen(chromium: str, page: tuple[pathlib.Path, pathlib.Path]) -> dict:
    return look(chromium, page[0])


def text_of_span(span: list[int]) -> str:
    return f"[{span[0]:,}, {span[1]:,})"


def test_draws_without_errors_or_requests(seen):
    assert seen["errors"] == []
    assert seen["requests"] == []
    assert len(seen["first"]["rows"]) == 8
    assert "8 ranks, attention over 8" in seen["first"]["summary"]
    assert "vLLM: refused" in seen["first"]["summary"]


def test_sliders_reach_every_legal_size(seen):
    expected = {f"{tp}:{attn}" for tp in range(1, 9) for attn in range(1, tp + 1) if tp % attn == 0}
    assert set(seen["layouts"]) == expected
    assert seen["layouts"]["1:1"]["spoken"] == "1 rank"
    assert seen["layouts"]["6:2"]["spoken"] == "6 ranks"


@pytest.mark.parametrize("sizes", ["8:8", "8:4", "6:3", "3:3", "5:1"])
def test_redraws_what_the_plan_of_those_sizes_says(page, seen, sizes):
    tp, attn_tp = sizes.split(":")
    plan = plan_json(page[1], "--tp", tp, "--attn-tp", attn_tp)
    drawn = seen["layouts"][sizes]
    assert len(drawn["rows"]) == len(plan["ranks"]) == int(tp)
    for rank, texts in zip(plan["ranks"], drawn["rows"], strict=True):
        text = " | ".join(texts)
        assert f"rank {rank['rank']}" in text
        for field in ("q_heads", "kv_heads", "mlp_columns", "embedding_rows", "lm_head_rows"):
            assert text_of_span(rank[field]) in text
    assert drawn["copies"] == [len(rank["kv_head_copies"]) for rank in plan["ranks"]]


def test_keyboard_moves_between_ranks(seen):
    assert [text.split("attention")[0].strip() for text in seen["focused"]] == [
        "Rank 0", "Rank 1", "Rank 2", "Rank 7", "Rank 0"]


def test_pointer_shows_a_ranks_figures(seen):
    assert seen["hovered"].startswith("Rank 5")
    assert "KV per token" in seen["hovered"]


def test_strips_are_drawn_to_scale(seen):
    larger, smaller = seen["widths"]  # 4 and 3 query heads of 28
    assert larger / smaller == pytest.approx(4 / 3, rel=0.02)


@pytest.mark.parametrize("options", [[], DARK], ids=["light", "dark"])
def test_passes_axe_in_both_colour_schemes(chromium, page, options, seen):
    found = look(chromium, page[0], *options)
    assert found["violations"] == []
    assert (found["background"] == seen["background"]) == (options == [])


@pytest.mark.parametrize("options", [[], DARK], ids=["light", "dark"])
def test_keeps_a_screenshot(chromium, page, options):
    path = BINARY.parents[1] / f"plan-page-{'dark' if options else 'light'}.png"
    path.unlink(missing_ok=True)
    run_chromium(chromium, page[0].parent, f"--screenshot={path}", *options, page[0].as_uri() + "#tp=8&attn_tp=4")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 50_000  # a blank page takes a tenth of that
