"""How the page of a history looks, and the script that shows its replicas at a moment."""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--ink:#16202c;--soft:#5d6b7a;--paper:#f6f8fa;--panel:#fff;--line:#dde3ea;--good:#0b7a53;
--goodbg:#e2f5ec;--bad:#b3261e;--badbg:#fde8e6;--bar:#8da2b8}
@media (prefers-color-scheme:dark){:root{--ink:#e4eaf1;--soft:#93a1b1;--paper:#10161d;--panel:#18212b;--line:#2a3643;
--good:#58d6a4;--goodbg:#12352a;--bad:#ff8f85;--badbg:#431d1a;--bar:#5a6c80}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1180px;margin:0 auto;padding:24px 16px 60px}
h1{font-size:25px;margin:0} h2{font-size:17px;margin:0}
p{margin:4px 0 10px} section>p{color:var(--soft);font-size:13px}
code{background:var(--panel);border:1px solid var(--line);border-radius:4px;padding:1px 5px;overflow-wrap:anywhere}
.verdict{padding:10px 14px;border-left:6px solid;border-radius:8px;font-weight:600;overflow-wrap:anywhere}
.verdict.good{background:var(--goodbg);color:var(--good)} .verdict.bad{background:var(--badbg);color:var(--bad)}
section{background:var(--panel);border:1px solid var(--line);border-radius:10px;padding:14px 16px;margin-top:14px}
.moment{position:sticky;top:0;z-index:1;display:flex;flex-wrap:wrap;gap:8px 12px;align-items:center;padding:8px 0;
background:var(--paper);border-bottom:1px solid var(--line)}
.moment label{flex:1 1 220px;display:flex;gap:8px;align-items:center} .moment input{flex:1;min-width:0}
.moment output{font-variant-numeric:tabular-nums;min-width:7em}
button{font:inherit;color:inherit;background:var(--panel);border:1px solid var(--line);border-radius:6px;
padding:3px 10px}
:focus-visible{outline:2px solid #2f6fde;outline-offset:2px}
.wide{overflow-x:auto}
svg{display:block;width:100%;min-width:620px;height:auto} svg text{fill:var(--ink);font-size:12px}
svg .soft{fill:var(--soft)} svg .on{fill:#fff;font-weight:600} svg .grid{stroke:var(--line)}
svg .cursor{stroke:var(--ink);stroke-width:1.5} svg .found{stroke:var(--bad);stroke-width:4}
.life{fill:var(--bar)} .paused{opacity:.35} rect.fault,path.fault{fill:var(--bad)} rect.fault{opacity:.45}
.follow{opacity:.14} .lead{opacity:.85} .away{fill:var(--paper);opacity:.8} .isr{fill:var(--good)}
.committed{fill:var(--ink);opacity:.16} .end{fill:none;stroke:var(--ink);stroke-width:1.2}
table{border-collapse:collapse;font-size:13px;margin-top:8px;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:3px 12px 3px 0;white-space:nowrap} th{color:var(--soft);font-weight:600}
.log{display:flex} .log i{flex:none;width:19px;height:19px;font:10px/19px system-ui,sans-serif;text-align:center;
color:#fff;border-right:1px solid var(--panel)} .log i.open{opacity:.5} .log i.none{background:none;color:var(--soft)}
.log i.mark{border-right:3px solid var(--bad)} .log b{font-weight:400;color:var(--soft);padding:0 6px}
.trace{list-style:none;margin:0;padding:0;font-size:13px;max-height:70vh;overflow:auto}
.trace li{display:flex;gap:10px;padding:1px 6px;overflow-wrap:anywhere} .trace a{color:var(--soft);text-decoration:none;
font-variant-numeric:tabular-nums;flex:none;width:4.5em;text-align:right} .trace span{min-width:0}
.trace .fault span{color:var(--bad)} .trace .quiet span{color:var(--soft)} .trace pre{margin:0;white-space:pre-wrap}
.trace .found{background:var(--badbg);color:var(--bad);font-weight:600} .trace .now{box-shadow:inset 3px 0 #2f6fde}
"""

SCRIPT = """
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const slider = document.getElementById("at"), shown = document.getElementById("shown");
  const lines = [...document.querySelectorAll(".trace li[data-ms]")];
  const SHOWN = 28, BEFORE = 6;
  const last = (changes, ms) => {
    let low = 0, high = changes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      changes[middle][0] <= ms ? low = middle + 1 : high = middle;
    }
    return low ? changes[low - 1] : null;
  };
  const element = (name, text, kind) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  const epochAt = (history, offset) => {
    let found = -1;
    for (const [epoch, start] of history) if (start <= offset) found = epoch;
    return found;
  };
  const log = (state, first, stop, end) => {
    const [, , , start, logEnd, watermark, history] = state, box = element("div", undefined, "log");
    if (first > 0) box.append(element("b", first + "…"));
    for (let offset = first; offset < stop; offset++) {
      const isThere = offset >= start && offset < logEnd, epoch = epochAt(data.epochs[history], offset);
      const cell = element("i", isThere ? String(offset % 100) : "·", isThere ? "" : "none");
      if (isThere) {
        cell.style.background = data.colours[(epoch + data.colours.length) % data.colours.length];
        cell.title = "offset " + offset + ", epoch " + epoch + (offset < watermark ? ", committed" : ", not committed");
        if (offset >= watermark) cell.classList.add("open");
      }
      if (offset === watermark - 1) cell.classList.add("mark");
      box.append(cell);
    }
    if (stop < end) box.append(element("b", "…" + (end - 1)));
    return box;
  };
  const draw = (box, ms) => {
    const lanes = data.partitions[box.dataset.partition], rows = [];
    let leader = null;
    for (const node in lanes) {
      const state = last(lanes[node], ms), life = last(data.lives[node], ms)[1];
      if (!state) continue;
      rows.push([node, state, life]);
      if (state[1] === "leader" && life !== "down" && (!leader || state[2] > leader[2])) leader = state;
    }
    const end = Math.max(1, ...rows.map(row => row[1][4]));
    const parting = Math.min(...rows.map(row => Math.min(row[1][4], row[1][5])));  // below it all are alike
    const first = Math.max(0, Math.min(end - SHOWN, parting - BEFORE)), stop = Math.min(end, first + SHOWN);
    const table = element("table"), head = table.createTHead().insertRow();
    for (const name of ["node", "is", "in sync", "epoch", "records (red edge: the watermark)", "log", "HW"])
      head.append(element("th", name));
    const body = table.createTBody();
    for (const [node, state, life] of rows) {
      const row = body.insertRow(), isUp = life === "up";
      const inSync = leader ? leader[7].includes(Number(node)) ? "yes" : "no" : "?";
      for (const text of [node, isUp ? state[1] || "nothing" : life, inSync, state[2]])
        row.append(element("td", text));
      const cell = row.insertCell();
      cell.append(log(state, first, stop, end));
      row.append(element("td", state[3] + " to " + state[4]), element("td", state[5]));
    }
    box.replaceChildren(table);
  };
  const show = (ms) => {
    slider.value = ms;
    shown.textContent = (ms / 1000).toFixed(3) + " s";
    if (data.found && ms >= data.end) shown.textContent += ", the finding";
    for (const svg of document.querySelectorAll("svg")) {
      const left = Number(svg.dataset.left), right = Number(svg.dataset.right);
      const x = left + (right - left) * ms / data.end, cursor = svg.querySelector(".cursor");
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
    }
    document.querySelectorAll(".state").forEach(box => draw(box, ms));
    const past = lines.filter(line => Number(line.dataset.ms) <= ms), now = past[past.length - 1];
    lines.forEach(line => line.classList.toggle("now", line === now));
    if (now) now.parentNode.scrollTop = now.offsetTop - now.parentNode.offsetTop - 80;
  };
  const moments = [...new Set(lines.map(line => Number(line.dataset.ms)))].sort((one, other) => one - other);
  const go = (direction) => {
    const ms = Number(current);
    const next = direction > 0 ? moments.find(one => one > ms) : moments.filter(one => one < ms).pop();
    if (next !== undefined) move(next);
  };
  let current = data.end;
  const move = (ms) => { current = Math.min(Math.max(0, ms), data.end); show(current); };
  slider.addEventListener("input", () => move(Number(slider.value)));
  for (const one of document.querySelectorAll("[data-go]"))
    one.addEventListener("click", () => go(Number(one.dataset.go)));
  document.addEventListener("keydown", (event) => {
    if (event.target === slider || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      go(event.key === "ArrowRight" ? 1 : -1);
      event.preventDefault();
    }
  });
  document.querySelectorAll("svg").forEach(svg => svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
    const left = Number(svg.dataset.left), right = Number(svg.dataset.right);
    move(Math.round((x - left) / (right - left) * data.end));
  }));
  const fromAddress = () => {
    const found = /^#ms=(\\d+)$/.exec(location.hash);
    move(found ? Number(found[1]) : data.end);
  };
  addEventListener("hashchange", fromAddress);
  fromAddress();
})();
"""
