"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const RANK_FIELDS = ["replica", "qBegin", "qEnd", "kvBegin", "kvEnd", "kvCopies", "mlpBegin", "mlpEnd",
  "embeddingBegin", "embeddingEnd", "lmHeadBegin", "lmHeadEnd", "embeddingBytes", "attentionBytes", "mlpBytes",
  "normBytes", "lmHeadBytes", "kvBytesPerToken"];
const $ = (id) => document.getElementById(id);

for (const layout of data.layouts) {
  layout.ranks = layout.ranks.map((row) => Object.fromEntries(RANK_FIELDS.map((field, i) => [field, row[i]])));
  for (const rank of layout.ranks) {
    rank.bytes = rank.embeddingBytes + rank.attentionBytes + rank.mlpBytes + rank.normBytes + rank.lmHeadBytes;
  }
}

// ---- text ----

const count = (n) => n.toLocaleString("en");
const plural = (amount, noun) => `${amount} ${noun}${amount === "1" ? "" : "s"}`;
const counted = (n, noun) => plural(count(n), noun);

function digits(value) {
  return value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

function bytes(n) {
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
  if (n < 1024) return `${n} B`;
  let unit = -1;
  for (; n >= 999.5 && unit < units.length - 1; ++unit) n /= 1024;
  return `${digits(n)} ${units[Math.max(unit, 0)]}`;
}

function seconds(s) {
  if (s >= 1) return `${digits(s)} s`;
  return s >= 1e-3 ? `${digits(s * 1e3)} ms` : `${digits(s * 1e6)} µs`;
}

function percent(fraction) {
  const value = fraction * 100;
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)} %`;
}

const span = (begin, end) => (end === begin ? "none" : `[${count(begin)}, ${count(end)})`);
const most = (layout, field) => Math.max(...layout.ranks.map((rank) => rank[field]));
const least = (layout, sizeOf) => Math.min(...layout.ranks.map(sizeOf));
const largest = (layout, sizeOf) => Math.max(...layout.ranks.map(sizeOf));

function between(layout, sizeOf) {
  const [low, high] = [least(layout, sizeOf), largest(layout, sizeOf)];
  return low === high ? count(low) : `${count(low)}–${count(high)}`;
}

// ---- elements ----

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function table(header, rows) {
  const cells = (row, tag) => row.map((text, i) =>
    element(tag, header[i].startsWith("#") ? { class: "number" } : {},
      typeof text === "number" ? count(text) : text));
  const head = header.map((text) => element("th", { scope: "col", class: text.startsWith("#") ? "number" : "" },
    text.replace("#", "")));
  return element("table", {}, element("thead", {}, element("tr", {}, ...head)),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells(row, "td")))));
}

// ---- the picture ----

function part(kind, begin, end, total, copy, title) {
  const style = `left:${100 * begin / total}%;width:${100 * (end - begin) / total}%`;
  return element("div", { class: `part ${kind}${copy ? " copy" : ""}`, style, title });
}

const MOST_TICKS = 40; // finer ones would only blur the strip

function strip(parts, text, cells = 0) {
  const track = element("div", { class: "track", "aria-hidden": "true" }, ...parts);
  if (cells > 1 && cells <= MOST_TICKS) {
    track.classList.add("ticks");
    track.style.setProperty("--cells", cells);
  }
  return element("td", {}, track, element("small", {}, text));
}

/// One part per KV head that the rank's query heads read.
function queryStrip(rank) {
  const perKv = data.q_heads / data.kv_heads;
  const parts = [];
  for (let kv = rank.kvBegin; kv < rank.kvEnd; ++kv) {
    const [begin, end] = [Math.max(rank.qBegin, kv * perKv), Math.min(rank.qEnd, (kv + 1) * perKv)];
    const shade = kv % 2 ? "query odd" : "query";
    parts.push(part(shade, begin, end, data.q_heads, rank.replica > 0,
      `query heads ${span(begin, end)} read KV head ${kv}`));
  }
  return strip(parts, `${span(rank.qBegin, rank.qEnd)} · ${rank.qEnd - rank.qBegin}`, data.q_heads);
}

function kvStrip(rank) {
  const parts = [];
  for (let head = rank.kvBegin; head < rank.kvEnd; ++head) {
    const copy = rank.replica > 0 || head < rank.kvBegin + rank.kvCopies;
    parts.push(part("kv", head, head + 1, data.kv_heads, copy, `KV head ${head}${copy ? ", a copy" : ""}`));
  }
  const copies = rank.replica > 0 ? rank.kvEnd - rank.kvBegin : rank.kvCopies;
  const text = `${span(rank.kvBegin, rank.kvEnd)} · ${rank.kvEnd - rank.kvBegin}`;
  return strip(parts, copies ? `${text}, ${copies} copied` : text, data.kv_heads);
}

function rangeStrip(kind, begin, end, total, copy, noun) {
  const parts = end > begin ? [part(kind, begin, end, total, copy, `${noun} ${span(begin, end)}`)] : [];
  return strip(parts, span(begin, end));
}

/// Bytes by part, drawn against the fullest rank.
function bytesStrip(rank, fullest) {
  let at = 0;
  const parts = [["embedding", rank.embeddingBytes, "embedding"], ["query", rank.attentionBytes, "attention"],
    ["mlp", rank.mlpBytes, "MLP"], ["norms", rank.normBytes, "norms"], ["lm-head", rank.lmHeadBytes, "LM head"]]
    .filter(([, size]) => size > 0)
    .map(([kind, size, noun]) => {
      at += size;
      return part(kind, at - size, at, fullest, false, `${noun}: ${bytes(size)}`);
    });
  return strip(parts, bytes(rank.bytes));
}

function groupSize(layout, group) {
  return { tp: layout.tp, lm_head_tp: layout.attn_tp, none: 1 }[group];
}

function rankRow(layout, rank, index) {
  const repeats = (group) => index >= groupSize(layout, group);
  const first = index % layout.attn_tp === 0;
  const label = layout.replicas > 1 && first ? [element("small", {}, `replica ${rank.replica}`)] : [];
  const row = element("tr", { tabindex: index === 0 ? "0" : "-1", class: first ? "new-replica" : "" },
    element("th", { scope: "row" }, `rank ${index}`, ...label), queryStrip(rank), kvStrip(rank),
    rangeStrip("mlp", rank.mlpBegin, rank.mlpEnd, data.mlp_columns, false, "MLP columns"),
    rangeStrip("embedding", rank.embeddingBegin, rank.embeddingEnd, data.vocabulary,
      repeats(layout.embedding_group), "embedding rows"),
    rangeStrip("lm-head", rank.lmHeadBegin, rank.lmHeadEnd, data.vocabulary,
      repeats(layout.lm_head_group), "LM head rows"),
    bytesStrip(rank, most(layout, "bytes")));
  row.addEventListener("mouseenter", () => choose(layout, index));
  row.addEventListener("focus", () => choose(layout, index));
  return row;
}

function drawRanks(layout) {
  const header = ["Rank", "Query heads", "KV heads", "MLP columns", "Embedding rows", "LM head rows", "Parameters"];
  $("ranks").tHead.replaceChildren(element("tr", {}, ...header.map((text) => element("th", { scope: "col" }, text))));
  $("ranks").tBodies[0].replaceChildren(...layout.ranks.map((rank, i) => rankRow(layout, rank, i)));
  choose(layout, 0);
}

function drawLegend() {
  const entries = [["query", "query heads (shade: which KV head they read)"], ["kv", "KV heads"], ["mlp", "MLP"],
    ["embedding", "embedding"], ["lm-head", "LM head"], ["norms", "norms"],
    ["kv copy", "hatched: a copy of what another rank holds first"]];
  $("legend").replaceChildren(...entries.map(([kind, text]) =>
    element("li", {}, element("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), text)));
}

/// Shows one rank's figures, on hover and on focus alike.
function choose(layout, index) {
  const rows = $("ranks").tBodies[0].rows;
  for (const row of rows) row.classList.toggle("chosen", row === rows[index]);
  const rank = layout.ranks[index];
  const facts = [["Query heads", `${span(rank.qBegin, rank.qEnd)} · ${rank.qEnd - rank.qBegin}`],
    ["KV heads", `${span(rank.kvBegin, rank.kvEnd)} · ${rank.kvEnd - rank.kvBegin}`],
    ["MLP columns", count(rank.mlpEnd - rank.mlpBegin)],
    ["Embedding rows", count(rank.embeddingEnd - rank.embeddingBegin)],
    ["LM head rows", count(rank.lmHeadEnd - rank.lmHeadBegin)],
    ["Embedding", bytes(rank.embeddingBytes)], ["Attention", bytes(rank.attentionBytes)],
    ["MLP", bytes(rank.mlpBytes)], ["Norms", bytes(rank.normBytes)],
    ["LM head", rank.lmHeadBytes ? bytes(rank.lmHeadBytes) : "in the embedding"],
    ["Parameters", `${bytes(rank.bytes)} (${count(rank.bytes)} B)`],
    ["KV per token", `${count(rank.kvBytesPerToken)} B`]];
  $("details").replaceChildren(
    element("h2", {}, `Rank ${index} `, element("span", {}, `attention replica ${rank.replica}`)),
    element("dl", {}, ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])));
}

function moveBetweenRanks(event) {
  const rows = [...$("ranks").tBodies[0].rows];
  const at = rows.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
  if (at < 0 || to === undefined || !rows[to]) return;
  rows[at].tabIndex = -1;
  rows[to].tabIndex = 0;
  rows[to].focus();
  event.preventDefault();
}

// ---- figures ----

function card(name, value, note = "", kind = "") {
  return element("div", {}, element("dt", {}, name), element("dd", { class: kind }, value, element("small", {}, note)));
}

function drawCards(layout) {
  const one = layout.decode_one;
  const cards = [card("Parameters, fullest rank", bytes(most(layout, "bytes")),
    `all ranks ${bytes(layout.ranks.reduce((sum, rank) => sum + rank.bytes, 0))}`),
    card("KV per token, fullest rank", bytes(most(layout, "kvBytesPerToken")))];
  if (layout.kv_tokens !== undefined) {
    cards.push(card("KV tokens that fit", layout.fits ? count(layout.kv_tokens) : "does not fit",
      `in ${bytes(data.rank_memory)} per rank`, layout.fits ? "" : "bad"));
  }
  cards.push(card("Decode, 1 sequence", `${digits(1 / one.total_s)} tok/s`,
    `step ${seconds(one.total_s)}, of it collectives ${seconds(one.collectives_s)}`));
  if (layout.sequences > 1) {
    cards.push(card(`Decode, ${count(layout.sequences)} sequences`, `${digits(layout.decode_tokens_per_s)} tok/s`,
      `step ${seconds(layout.decode_many.total_s)}`));
  }
  cards.push(card(`Prompt of ${count(data.prompt_tokens)}`, seconds(layout.prefill.total_s)),
    card("Cost of unevenness", percent(one.total_s / one.evenly_spread_s - 1), "of a decode step"));
  $("cards").replaceChildren(...cards);
  $("peers").replaceChildren(...layout.peers.map((peer) => {
    const [verdict, kind] = peer.served ? ["served", "good"] : ["refused", "bad"];
    return card(`${peer.engine}, asked for this`, verdict, peer.reason, kind);
  }));
}

function drawLists(layout) {
  $("traffic").replaceChildren(layout.traffic.length === 0 ? "None: one rank needs none." :
    table(["For", "Collective", "Group", "#Calls", "#Bytes handed in"],
      layout.traffic.map(([purpose, kind, group, size, calls, size_bytes]) =>
        [purpose, kind, `${group}, ${size} ranks`, calls, size_bytes])));
  $("uneven").replaceChildren(layout.uneven.length === 0 ? "Nothing: all ranks hold alike." :
    table(["What", "#Largest", "#Smallest", "#Against mean"],
      layout.uneven.map((entry) => [entry.what, entry.largest, entry.smallest,
        percent(entry.largest / entry.mean - 1)])));
  $("duplicated").replaceChildren(layout.duplicated.length === 0 ? "Nothing." :
    table(["What", "#Parameters beyond one copy", "#KV per token"],
      layout.duplicated.map((entry) => [entry.what, bytes(entry.extra_bytes),
        entry.extra_kv_bytes_per_token ? bytes(entry.extra_kv_bytes_per_token) : "–"])));
  $("groups").replaceChildren(table(["Group", "Ranks"], layout.groups));
}

function drawSummary(layout) {
  const q = between(layout, (rank) => rank.qEnd - rank.qBegin);
  const kv = between(layout, (rank) => rank.kvEnd - rank.kvBegin);
  const columns = between(layout, (rank) => rank.mlpEnd - rank.mlpBegin);
  const modes = { replicate: "each computing the same tokens", dp: "each with sequences of its own" };
  const replicas = layout.replicas > 1 ? `, in ${layout.replicas} replicas ${modes[layout.attn_replicas]}` : "";
  $("summary").textContent = `${counted(layout.tp, "rank")}, attention over ${layout.attn_tp}${replicas}: ` +
    `per rank ${plural(q, "query head")}, ${plural(kv, "KV head")}, ${plural(columns, "MLP column")}. ` +
    layout.peers.map((peer) => `${peer.engine}: ${peer.served ? "served" : "refused"}`).join(", ") + ".";
}

// ---- state ----

const sizes = [...new Set(data.layouts.map((layout) => layout.tp))];
const layoutsOf = (tp) => data.layouts.filter((layout) => layout.tp === tp);
let current = { tp: data.tp, attnTp: data.attn_tp };

function setSlider(id, values, value, noun) {
  const slider = $(id);
  slider.max = values.length - 1;
  slider.value = values.indexOf(value);
  slider.disabled = values.length === 1;
  slider.setAttribute("aria-valuetext", counted(value, noun));
  $(`${id}-value`).textContent = value;
}

function show(tp, attnTp) {
  const legal = layoutsOf(tp);
  const layout = legal.find((candidate) => candidate.attn_tp === attnTp) ?? legal[legal.length - 1];
  current = { tp: layout.tp, attnTp: layout.attn_tp };
  setSlider("tp", sizes, layout.tp, "rank");
  setSlider("attn-tp", legal.map((candidate) => candidate.attn_tp), layout.attn_tp, "rank");
  drawSummary(layout);
  drawCards(layout);
  drawRanks(layout);
  drawLists(layout);
}

function drawHeader() {
  $("model").textContent = data.model;
  $("facts").textContent = `${data.architecture} · ${data.layers} layers · hidden ${count(data.hidden)} · ` +
    `${data.q_heads} query / ${data.kv_heads} KV heads of ${data.head_dim} · MLP ${count(data.mlp_columns)} · ` +
    `vocabulary ${count(data.vocabulary)}${data.tied ? " (tied)" : ""} · ${data.dtype}`;
  const f = data.figures;
  $("assumptions").textContent = `Predicted from ${+(f.memory_bytes_per_s / 1e9).toPrecision(4)} GB/s and ` +
    `${+(f.operations_per_s / 1e12).toPrecision(4)} TFLOP/s per rank, collectives of ` +
    `${+(f.collective_latency_s * 1e6).toPrecision(4)} µs and ${+(f.collective_bytes_per_s / 1e9).toPrecision(4)} ` +
    `GB/s (${f.name}), at a context of ${count(data.context)} tokens. Every phase waits for its slowest rank; bytes ` +
    "of collectives are those that a rank hands in.";
}

/// The sizes that the address asks for, e.g. #tp=8&attn_tp=4, or those of the plan.
function startingSizes() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const tp = Number(wanted.get("tp") ?? data.tp);
  return sizes.includes(tp) ? [tp, Number(wanted.get("attn_tp") ?? (tp === data.tp ? data.attn_tp : tp))]
    : [data.tp, data.attn_tp];
}

drawHeader();
drawLegend();
show(...startingSizes());
$("tp").addEventListener("input", (event) => {
  const tp = sizes[event.target.value];
  show(tp, Math.max(...layoutsOf(tp).map((layout) => layout.attn_tp)));
});
$("attn-tp").addEventListener("input", (event) => {
  show(current.tp, layoutsOf(current.tp)[event.target.value].attn_tp);
});
$("ranks").addEventListener("keydown", moveBetweenRanks);
window.addEventListener("hashchange", () => show(...startingSizes()));
