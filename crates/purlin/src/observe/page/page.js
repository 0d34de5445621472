"use strict";
// What the page shows it has from the command that serves it, view by view. Nothing is kept but the numbers of the graphs, and
// of those so many; nothing is asked while the page is hidden.

const POINTS = 300;
const VIEWS = [
  ["overview", "Overview"], ["memory", "Memory and copies"], ["processes", "Processes"], ["schedulers", "Schedulers"],
  ["regions", "Regions"], ["tables", "Tables"], ["ports", "Ports and sockets"], ["budgets", "Budgets"], ["flame", "Flame graphs"], ["trace", "Trace"],
];

const $ = (id) => document.getElementById(id);

// A name in code, which a line may end in behind what separates its parts, and nowhere else. An arity stays with its name.
function parts(text) {
  const all = text.split(/(?<=[:.,_])(?=\w)|(?<=\/)(?=[A-Za-z_])/);
  return all.flatMap((part, i) => i ? [document.createElement("wbr"), part] : [part]);
}
// An element. Attributes that are functions are listeners; children that are null are left out.
function h(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (typeof v === "function") e.addEventListener(k, v);
    else if (v !== null && v !== undefined && v !== false) e.setAttribute(k, v === true ? "" : v);
  }
  const code = name === "code" || e.classList.contains("code");
  for (const c of children.flat(3)) {
    if (c !== null && c !== undefined && c !== false) e.append(...(code && typeof c === "string" ? parts(c) : [c]));
  }
  return e;
}
function s(name, attributes, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

// ---- how things are written

const plain = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 1 });
function count(n) { return n === null || n === undefined ? "–" : plain.format(n); }
function bytes(n) {
  if (n === null || n === undefined) return "–";
  let unit = 0;
  while (Math.abs(n) >= 1024 && unit < 4) { n /= 1024; unit++; }
  return plain.format(n) + " " + ["B", "KiB", "MiB", "GiB", "TiB"][unit];
}
function large(n) {
  if (n === null || n === undefined) return "–";
  let unit = 0;
  while (Math.abs(n) >= 10000 && unit < 3) { n /= 1000; unit++; }
  return plain.format(n) + ["", " k", " M", " G"][unit];
}
function time(seconds) {
  if (seconds < 1e-3) return plain.format(seconds * 1e6) + " µs";
  if (seconds < 1) return plain.format(seconds * 1e3) + " ms";
  if (seconds < 120) return plain.format(seconds) + " s";
  const m = Math.floor(seconds / 60), hours = Math.floor(m / 60), days = Math.floor(hours / 24);
  if (m < 120) return m + " min";
  return hours < 48 ? hours + " h " + (m % 60) + " min" : days + " days " + (hours % 24) + " h";
}
function percent(share) { return plain.format(100 * share) + " %"; }
function place(p) {
  if (!p || !p.function) return "an unknown place";
  return p.file ? p.file + ":" + p.line + ", " + p.function : p.function;
}
// A value by the name that it has in JSON.
function written(name, v) {
  if (v === null || v === undefined) return "–";
  if (typeof v === "boolean") return v ? "yes" : "no";
  if (typeof v === "object") {
    if (Array.isArray(v)) return v.map((x) => written("", x)).join(", ");
    return "function" in v ? place(v) : Object.entries(v).map(([k, x]) => words(k) + " " + written(k, x)).join("; ");
  }
  if (typeof v !== "number") return String(v);
  if (/(^|_)bytes$/.test(name)) return bytes(v);
  if (/_ns$/.test(name)) return time(v / 1e9);
  if (/_us$/.test(name)) return time(v / 1e6);
  if (/_ms$/.test(name)) return time(v / 1e3);
  if (/_s$/.test(name)) return time(v);
  return count(v);
}
function words(name) {
  const text = name.replace(/_(bytes|ns|us|ms|s)$/, "").replace(/_/g, " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
function pidLink(pid, key) {
  if (!pid || !/^<0\./.test(pid)) return pid || "–";
  return h("a", { href: "#process/" + encodeURIComponent(pid), class: "code", "data-k": key + pid }, pid);
}

// ---- asking

let key = null;
let ended = false;

class Refusal extends Error {
  constructor(status, text) { super(text); this.status = status; }
}
async function ask(path, parameters, method) {
  const query = new URLSearchParams();
  for (const [k, v] of Object.entries(parameters || {})) if (v !== "" && v !== null && v !== undefined) query.set(k, v);
  // A plus sign would stand for itself.
  const text = query.toString().replace(/\+/g, "%20");
  const response = await fetch("/api/" + path + (text ? "?" + text : ""), {
    method: method || "GET", headers: key ? { Authorization: "Bearer " + key } : {}, cache: "no-store",
  });
  let body;
  try { body = await response.json(); } catch { throw new Refusal(response.status, "no answer"); }
  if (!response.ok) throw new Refusal(response.status, body.error || "no answer");
  return body;
}
function say(text) { if ($("status").textContent !== text) $("status").textContent = text; }
// Nothing more is asked. That the emulator has ended is known better than that nobody answers.
function finish(text, known) {
  if (ended && !known) return;
  ended = true;
  $("alert").textContent = text;
  $("alert").hidden = false;
  $("pause").disabled = true;
  say("What is shown is the last that was known");
}
// What went wrong; whether it makes sense to go on.
function failed(e) {
  if (e instanceof Refusal && e.status === 410) return finish(e.message.charAt(0).toUpperCase() + e.message.slice(1) + ".", true);
  if (e instanceof Refusal && e.status === 401) {
    return finish("This page is not open any more. Start purlin observe again, and open the address that it prints.");
  }
  if (e instanceof Refusal) return say(e.message);
  if (e instanceof TypeError) return finish("purlin observe has ended.");
  throw e;
}
async function waitForEnd() {
  while (!ended) {
    try { await ask("end"); } catch (e) {
      if (e instanceof Refusal || ended) { failed(e); return; }
      // The browser may have broken off a connection that said nothing for long.
      try { await ask("overview", { again: 1 }); } catch (again) { failed(again); return; }
    }
  }
}

// ---- what is known

let overview = null;
const past = { at: [], reductions: [], resident: [], processes: [], queue: [], busy: [], io: [], collections: [] };
let utilisation = [];
let dirtyWork = [];

function remember(o) {
  const last = overview;
  overview = o;
  if (!last || last.pid !== o.pid || o.clock_ns <= last.clock_ns) return;
  const span = (o.clock_ns - last.clock_ns) / 1e9;
  const rate = (name) => Math.max(0, o[name] - last[name]) / span;
  utilisation = o.schedulers.map((x, i) => {
    const before = last.schedulers[i];
    if (!before || !x.online) return 0;
    return Math.min(1, Math.max(0, 1 - (x.idle_ns - before.idle_ns) / 1e9 / span));
  });
  dirtyWork = o.dirty.map((x, i) => Math.max(0, x.worked_ns - last.dirty[i].worked_ns) / 1e9 / span);
  const online = o.schedulers.filter((x) => x.online).length || 1;
  const push = (name, v) => { past[name].push(v); if (past[name].length > POINTS) past[name].shift(); };
  push("at", o.clock_ns / 1e9);
  push("reductions", rate("reductions"));
  push("resident", o.memory.resident_bytes || o.memory.allocated_bytes);
  push("processes", o.processes.count);
  push("queue", o.schedulers.reduce((n, x) => n + x.queue, 0));
  push("busy", utilisation.reduce((a, b) => a + b, 0) / online);
  push("io", rate("read_bytes") + rate("written_bytes"));
  push("collections", rate("collections"));
}
function facts() {
  const o = overview;
  $("who").textContent = "· " + o.node + " · process " + o.pid;
  $("facts").textContent = "Purlin " + o.purlin + " · OTP " + o.otp + " · up " + time(o.uptime_s) + " · " +
    count(o.processes.count) + " processes · " + bytes(o.memory.resident_bytes || o.memory.allocated_bytes);
  document.title = o.node + " · purlin observe";
}

// ---- parts of views

function graph(name, title, write, most) {
  const all = past[name];
  const now = all.length ? write(all[all.length - 1]) : "–";
  const top = Math.max(most || 0, ...all, 1e-9);
  const low = Math.min(...all, top), span = past.at.length > 1 ? past.at[past.at.length - 1] - past.at[0] : 0;
  const label = all.length ? title + ": " + now + "; between " + write(low) + " and " + write(Math.max(...all)) + " in " + time(span) : title;
  const svg = s("svg", { viewBox: "0 0 100 40", preserveAspectRatio: "none", role: "img", "aria-label": label });
  svg.append(s("line", { class: "base", x1: 0, x2: 100, y1: 39.5, y2: 39.5 }));
  if (all.length > 1) {
    const points = all.map((v, i) => (100 * i / (all.length - 1)).toFixed(2) + "," + (39 - 37 * v / top).toFixed(2)).join(" ");
    svg.append(s("polygon", { class: "area", points: "0,40 " + points + " 100,40" }), s("polyline", { class: "line", points }));
  }
  return h("section", { class: "card" }, h("h3", {}, title), h("p", { class: "big" }, now), svg);
}
function card(title, big, small) {
  return h("section", { class: "card" }, h("h3", {}, title), h("p", { class: "big" }, big), small ? h("p", { class: "note" }, small) : null);
}
function bar(share, label) {
  const w = Math.max(0, Math.min(1, share || 0)) * 100;
  const svg = s("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    s("rect", { class: "back", width: 100, height: 10 }), s("rect", { width: w.toFixed(2), height: 10 }));
  return h("span", {}, svg, label);
}
// columns: [title, row => content, { sort, kind }]
function table(caption, columns, rows, state, change) {
  const head = columns.map(([title, , o]) => {
    const options = o || {};
    const numeric = options.kind === "number" ? "number" : null;
    if (!options.sort || !state) return h("th", { scope: "col", class: numeric }, title);
    const on = state.sort === options.sort;
    const next = on && state.order === "desc" ? "asc" : on ? "desc" : options.kind === "number" ? "desc" : "asc";
    const press = () => change({ sort: options.sort, order: next, offset: 0 });
    const arrow = on ? (state.order === "desc" ? " ▾" : " ▴") : "";
    return h("th", { scope: "col", class: numeric, "aria-sort": on ? (state.order === "desc" ? "descending" : "ascending") : null },
      h("button", { type: "button", click: press, "data-k": "sort-" + options.sort }, title + arrow));
  });
  const body = rows.map((r) => h("tr", {}, columns.map(([, content, o]) => h("td", { class: o && o.kind }, content(r)))));
  if (!rows.length) body.push(h("tr", {}, h("td", { colspan: columns.length }, "None.")));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption, "data-k": "scroll-" + caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)));
}
function pager(found, state, change) {
  const from = found ? state.offset + 1 : 0, to = Math.min(found, state.offset + state.limit);
  return h("div", { class: "pager" },
    h("button", { type: "button", "data-k": "back", disabled: state.offset === 0, click: () => change({ offset: Math.max(0, state.offset - state.limit) }) }, "Previous"),
    h("span", {}, count(from) + " to " + count(to) + " of " + count(found)),
    h("button", { type: "button", "data-k": "next", disabled: to >= found, click: () => change({ offset: state.offset + state.limit }) }, "Next"));
}
function search(label, state, change) {
  let timer = null;
  const input = h("input", { type: "search", value: state.filter, maxlength: 200, "data-k": "filter", autocomplete: "off", spellcheck: "false",
    input: () => { clearTimeout(timer); timer = setTimeout(() => change({ filter: input.value, offset: 0 }), 300); } });
  return h("form", { submit: (e) => { e.preventDefault(); clearTimeout(timer); change({ filter: input.value, offset: 0 }); } },
    h("label", {}, label, input));
}
function pairs(object) {
  return h("dl", { class: "pairs" }, Object.entries(object).map(([k, v]) => [h("dt", {}, words(k)), h("dd", { class: typeof v === "string" ? "code" : null }, written(k, v))]));
}
function stackTable(stack) {
  return table("Stack, the innermost first", [
    ["Function", (f) => f.function, { kind: "code" }], ["Line", (f) => f.file ? f.file + ":" + f.line : "–", { kind: "code" }],
  ], stack);
}
function causeList(answer) {
  const total = answer.bytes || 0;
  const list = answer.causes.map((c, i) => {
    const n = typeof c.bytes === "number" ? c.bytes : null;
    const head = [n === null ? null : (c.estimated ? "about " : "") + bytes(n) + (total ? " (" + percent(n / total) + ")" : ""),
      c.kind ? c.kind.replace(/_/g, " ") : null, "times" in c ? count(c.times) + " times" : null].filter(Boolean).join(", ");
    const rest = Object.fromEntries(Object.entries(c).filter(([k]) => !["site", "stack", "advice", "captured", "kind"].includes(k)));
    const v = c.captured;
    return h("li", {}, h("details", { "data-open": "cause-" + place(c.site) + c.kind },
      h("summary", { "data-k": "cause-" + i }, head + " at ", h("span", { class: "code" }, place(c.site))),
      v ? h("p", {}, h("code", {}, v.variable || (v.variables || []).join(" or ") || "variable " + (v.index + 1) + " of " + v.count),
        ", captured by ", h("code", {}, v.function), ", is " + bytes(v.bytes) + " of each.") : null,
      c.advice ? h("p", { class: "advice" }, "Do: " + c.advice) : null,
      pairs(rest), Array.isArray(c.stack) ? [h("h4", {}, "Stack, the innermost first"), stackTable(c.stack)] : null));
  });
  return [h("ol", {}, list), answer.left_out ? h("p", { class: "note" }, count(answer.left_out) + " more are not listed.") : null];
}
// Anything that purlin explain tells, by its form.
function shown(name, v, level) {
  if (v === null || typeof v !== "object") return null;
  const title = h(level > 2 ? "h4" : "h3", {}, words(name));
  if (Array.isArray(v)) {
    if (!v.length) return [title, h("p", {}, "None.")];
    if (typeof v[0] !== "object") return [title, h("p", { class: "code" }, v.join(", "))];
    const keys = [...new Set(v.slice(0, 50).flatMap((r) => Object.keys(r)))].filter((k) => k !== "stack");
    const columns = keys.map((k) => [words(k), (r) => k === "pid" || k === "owner" ? pidLink(r[k], name + k) : written(k, r[k]),
      { kind: typeof v[0][k] === "number" ? "number" : "code" }]);
    return [title, table(words(name), columns, v.slice(0, 1000))];
  }
  const flat = {}, nested = [];
  for (const [k, x] of Object.entries(v)) {
    if (k === "causes") continue;
    if (x !== null && typeof x === "object" && !("function" in x)) nested.push([k, x]); else flat[k] = x;
  }
  const sizes = name === "kinds" && Object.values(flat).every((x) => typeof x === "number");
  const most = sizes ? Math.max(1, ...Object.values(flat)) : 1;
  return [level ? title : null,
    sizes ? table("Kinds", [["Kind", (r) => words(r[0])], ["Size", (r) => bar(r[1] / most, bytes(r[1]))]], Object.entries(flat).sort((a, b) => b[1] - a[1]))
      : Object.keys(flat).length ? pairs(flat) : null,
    Array.isArray(v.causes) ? causeList(v) : null,
    nested.map(([k, x]) => shown(k, x, (level || 0) + 1))];
}
function explained(answer) {
  const { schema, topic, purlin, otp, pid, uptime_s, accounts, took_ms, cpu_ms, again_ms, ...rest } = answer;
  return [accounts === false ? h("p", { class: "note" }, "No accounts are kept (+Fexplain false).") : null, shown("", rest, 0)];
}
function tabs(label, base, all, current) {
  return h("ul", { class: "tabs", "aria-label": label }, all.map(([name, title]) => h("li", {},
    h("a", { href: "#" + base + "/" + name, "aria-current": name === current ? "true" : null, "data-k": "tab-" + name }, title))));
}

// ---- views: what they ask for, and how they show it

const states = {};
function state(name, initial) { return states[name] || (states[name] = Object.assign({ filter: "", offset: 0, limit: 50, order: "desc" }, initial)); }
let phase = 0;
let tracing = null;

const views = {
  overview: {
    title: "Overview",
    load: async () => overview,
    show: (o) => [
      h("div", { class: "cards" },
        graph("reductions", "Reductions per second", large), graph("busy", "Schedulers at work", percent, 1),
        graph("queue", "Processes that wait for a scheduler", count), graph("resident", "Resident memory", bytes),
        graph("processes", "Processes", count), graph("io", "Bytes read and written per second", bytes),
        graph("collections", "Collections per second", large),
        card("Ports", count(o.ports.count), "of " + count(o.ports.limit) + " at most"),
        card("Atoms", count(o.atoms.count), "of " + count(o.atoms.limit) + " at most"),
        card("Tables", count(o.tables.count), null),
        card("Shared regions", count(o.regions.count), bytes(o.regions.bytes)),
        card("Machine code", o.machine_code ? count(o.machine_code.functions) + " functions" : "none", o.machine_code ?
          bytes(o.machine_code.bytes) + " of " + bytes(o.machine_code.limit_bytes) + " at most" : "all is interpreted"),
        card("Processes started", large(o.spawned), "since the start; at most " + large(o.processes.limit) + " at a time")),
      h("h3", {}, "What memory is used for"), shown("kinds", o.memory.kinds, 0),
      pairs({ resident_bytes: o.memory.resident_bytes, peak_bytes: o.memory.peak_bytes, allocated_bytes: o.memory.allocated_bytes,
        context_switches: o.context_switches, reclaimed_bytes: o.reclaimed_bytes, processor_time_ns: o.cpu_ns })],
  },
  memory: {
    title: "Memory and copies",
    load: async (topic) => ask("explain", { topic: topic || "memory", top: 50, again: 1 }),
    show: (a, topic) => {
      const all = overview.topics.filter((t) => t.name !== "run");
      const now = all.find((t) => t.name === (topic || "memory"));
      return [tabs("Topics", "memory", all.map((t) => [t.name, words(t.name)]), topic || "memory"),
        now ? h("p", { class: "note" }, "purlin explain " + overview.pid + " " + now.name + ": " + now.doc) : null, explained(a)];
    },
  },
  processes: {
    title: "Processes",
    load: async (_, fresh, old) => {
      const st = state("processes", { sort: "memory" });
      const some = old && old.each > 1;
      if (some && !fresh) phase++;
      return ask("processes", { sort: st.sort, order: st.order, filter: st.filter, offset: st.offset, limit: st.limit,
        phase: some ? phase : null, also: some ? old.rows.map((r) => r.pid).join(",") : null, again: fresh ? null : 1 });
    },
    show: (a) => {
      const st = state("processes", { sort: "memory" });
      const change = (c) => { Object.assign(st, c); reload(); };
      const recent = a.since_s ? (r) => r.recent === null ? "–" : large(r.recent / a.since_s) : () => "–";
      return [
        search("Only those with this in their pid, name, label or functions", st, change),
        h("p", { class: "note" }, count(a.count) + " processes" + (a.each > 1 ? "; " + count(a.asked) + " of them are asked at a time, others the next time" : "") +
          (a.silent ? "; " + count(a.silent) + " did not answer" : "") + ". Those asked take " + bytes(a.memory_bytes) + " and have " + count(a.messages) + " messages waiting."),
        a.each > 1 ? h("p", {}, h("button", { type: "button", class: "plain", "data-k": "others", click: () => { phase++; reload(); } }, "Ask others now")) : null,
        table("Processes", [
          ["Process", (r) => pidLink(r.pid, "p"), { sort: "pid" }],
          ["Name or label", (r) => r.name || r.label || "–", { sort: "name", kind: "code" }],
          ["Is in", (r) => r.current, { sort: "current", kind: "code" }],
          ["Started with", (r) => r.initial, { sort: "initial", kind: "code" }],
          ["Status", (r) => r.status, { sort: "status" }],
          ["Memory", (r) => bytes(r.memory_bytes), { sort: "memory", kind: "number" }],
          ["Binaries", (r) => bytes(r.binary_bytes), { sort: "binaries", kind: "number" }],
          ["Messages", (r) => count(r.messages), { sort: "messages", kind: "number" }],
          ["Reductions per second", recent, { sort: "recent", kind: "number" }],
          ["Reductions", (r) => large(r.reductions), { sort: "reductions", kind: "number" }],
        ], a.rows, st, change),
        pager(a.found, st, change)];
    },
  },
  process: {
    title: "Process", parent: "processes",
    load: async (pid, fresh) => ask("process", { pid, again: fresh ? null : 1 }),
    show: (a, pid) => {
      const back = h("p", {}, h("a", { href: "#processes", "data-k": "to-processes" }, "All processes"));
      if (!a.alive) return [back, h("p", {}, h("span", { class: "code" }, pid), " has ended.")];
      const others = (title, o) => [h("h3", {}, title + " (" + count(o.count) + ")"),
        h("p", { class: "code" }, o.first.length ? o.first.flatMap((t, i) => [i ? ", " : "", ...linked(t, title + i)]) : "None.")];
      return [back, h("h3", {}, pid + (a.name ? " " + a.name : "")),
        pairs({ started_with: a.initial, ...a.items, binary_bytes: a.binary_bytes, region_bytes: a.region_bytes, message_bytes: a.message_bytes }),
        a.sensitive ? h("p", { class: "note" }, "The process is sensitive: what it holds is not shown.") : null,
        h("h3", {}, "Stack"),
        table("Stack, the innermost first, and what it holds", [
          ["Function", (f) => f.function, { kind: "code" }], ["Line", (f) => f.file ? f.file + ":" + f.line : "–", { kind: "code" }],
          ["Holds", (f) => f.slots.map((t) => h("div", {}, t)).concat(f.slot_count > f.slots.length ? ["and " + (f.slot_count - f.slots.length) + " more"] : []), { kind: "code" }],
        ], a.stack),
        h("h3", {}, "Messages (" + count(a.message_count) + ")"),
        a.messages.length ? h("ol", { class: "code" }, a.messages.map((m) => h("li", {}, m))) : h("p", {}, "None."),
        others("Links", a.links), others("Monitors", a.monitors), others("Monitored by", a.monitored_by),
        h("h3", {}, "Dictionary"),
        table("Dictionary", [["Key", (r) => r.key, { kind: "code" }], ["Value", (r) => r.value, { kind: "code" }]], a.dictionary)];
    },
  },
  schedulers: {
    title: "Schedulers",
    load: async () => {
      const topic = overview.topics.find((t) => t.name === "latency");
      return { latency: topic ? await ask("explain", { topic: "latency", top: 20, again: 1 }) : null };
    },
    show: (a) => [
      h("div", { class: "cards" }, graph("busy", "Schedulers at work", percent, 1), graph("queue", "Processes that wait for a scheduler", count), graph("reductions", "Reductions per second", large)),
      h("h3", {}, "Schedulers"),
      table("Schedulers", [["Number", (r) => count(r.number), { kind: "number" }], ["Online", (r) => r.online ? "yes" : "no"],
        ["At work since the last look", (r) => bar(utilisation[r.number - 1], percent(utilisation[r.number - 1] || 0))],
        ["Now", (r) => r.works ? "runs a process" : "idle"], ["Waiting in its queue", (r) => count(r.queue), { kind: "number" }]], overview.schedulers),
      h("h3", {}, "Pools for natives that take long"),
      table("Dirty pools", [["Pool", (r) => r.name], ["Threads", (r) => count(r.threads), { kind: "number" }], ["At work now", (r) => count(r.busy), { kind: "number" }],
        ["Waiting", (r) => count(r.queue), { kind: "number" }], ["Threads at work since the last look", (r) => count(dirtyWork[overview.dirty.indexOf(r)]), { kind: "number" }]], overview.dirty),
      a.latency ? [h("h3", {}, "Where processes wait"), explained(a.latency)] : null],
  },
  regions: {
    title: "Regions",
    load: async (_, fresh, old) => ask("regions", { phase: old && old.each > 1 ? ++phase : null, again: fresh ? null : 1 }),
    show: (a) => [
      h("p", { class: "note" }, count(a.count) + " regions take " + bytes(a.bytes) + ". Processes that were asked refer to " + count(a.found) + " of them, " + bytes(a.found_bytes) +
        (a.each > 1 ? "; of each " + count(a.each) + " processes one is asked at a time" : "") + ". The others are held by tables, messages, persistent terms or code."),
      table("Regions that processes refer to, the largest", [
        ["Number", (r) => r.number, { kind: "number" }], ["Size", (r) => bytes(r.bytes), { kind: "number" }],
        ["Holders in all", (r) => count(r.holders), { kind: "number" }], ["Processes", (r) => count(r.processes), { kind: "number" }],
        ["Such as", (r) => r.some.flatMap((p, i) => [i ? ", " : "", pidLink(p, "r" + r.number)])]], a.rows)],
  },
  tables: {
    title: "Tables",
    load: async (_, fresh) => { const st = state("tables", { sort: "bytes" }); return ask("tables", { ...st, again: fresh ? null : 1 }); },
    show: (a) => {
      const st = state("tables", { sort: "bytes" });
      const change = (c) => { Object.assign(st, c); reload(); };
      return [search("Only those with this in their name or owner", st, change),
        h("p", { class: "note" }, count(a.count) + " tables take " + bytes(a.bytes) + "."),
        table("Tables", [["Name", (r) => r.name, { sort: "name", kind: "code" }], ["Known as", (r) => r.id || "–", { kind: "code" }],
          ["Owner", (r) => pidLink(r.owner, "t" + r.id), { sort: "owner" }], ["Type", (r) => r.kind], ["Access", (r) => r.protection],
          ["Objects", (r) => count(r.objects), { sort: "objects", kind: "number" }], ["Size", (r) => bytes(r.bytes), { sort: "bytes", kind: "number" }]], a.rows, st, change),
        pager(a.found, st, change)];
    },
  },
  ports: {
    title: "Ports and sockets",
    load: async (_, fresh) => { const st = state("ports", { sort: "queued" }); return ask("ports", { ...st, again: fresh ? null : 1 }); },
    show: (a) => {
      const st = state("ports", { sort: "queued" });
      const change = (c) => { Object.assign(st, c); reload(); };
      return [search("Only those with this in their name, number or owner", st, change),
        h("p", { class: "note" }, count(a.count) + " ports, with " + bytes(a.queued_bytes) + " queued to be written; " + count(a.sockets) + " sockets of module socket, which are no ports."),
        table("Ports", [["Port", (r) => r.id, { sort: "id", kind: "code" }], ["What", (r) => r.name + (r.registered ? ", " + r.registered : "") + (r.os_pid ? ", process " + r.os_pid : ""), { sort: "name", kind: "code" }],
          ["Owner", (r) => pidLink(r.owner, "o" + r.id), { sort: "owner" }], ["Local address", (r) => r.local || "–", { kind: "code" }], ["Peer", (r) => r.peer || "–", { kind: "code" }],
          ["Read", (r) => bytes(r.read_bytes), { sort: "read", kind: "number" }], ["Written", (r) => bytes(r.written_bytes), { sort: "written", kind: "number" }],
          ["Queued", (r) => bytes(r.queued_bytes), { sort: "queued", kind: "number" }], ["Memory", (r) => bytes(r.memory_bytes), { sort: "memory", kind: "number" }]], a.rows, st, change),
        pager(a.found, st, change)];
    },
  },
  budgets: {
    title: "Budgets",
    load: async (_, fresh) => ask("explain", { topic: "budgets", top: 100, again: fresh ? null : 1 }),
    show: (a) => {
      const below = (n, deep) => a.budgets.filter((b) => (b.parent || 0) === n).flatMap((b) => [[b, deep], ...below(b.number, deep + 1)]);
      const known = new Set(a.budgets.map((b) => b.number));
      const tops = a.budgets.filter((b) => !known.has(b.parent)).flatMap((b) => [[b, 0], ...below(b.number, 1)]);
      const of = (b, what) => b.counts.find((c) => c.what === what);
      const limited = (show, n, most) => show(n) + (most === null ? "" : " of " + show(most));
      const column = (title, what, show) => [title, ([b]) => limited(show, of(b, what).used, of(b, what).limit), { kind: "number" }];
      const reached = (b) => b.counts.reduce((n, c) => n + c.reached, 0) + b.cpu_waits + b.senders_waited + b.messages_dropped + b.receivers_ended;
      return [h("p", { class: "note" }, count(a.count) + " budgets. Those below another count for it, too."),
        table("Budgets", [["Budget", ([b, deep]) => "\u2003".repeat(deep) + b.name + (b.ended ? ", ended" : ""), { kind: "code" }],
          column("Memory", "memory", bytes), column("Processes", "processes", count), column("Ports", "ports", count), column("Tables", "tables", count), column("Atoms", "atoms", count),
          ["Processor time", ([b]) => b.cpu_s.toFixed(2) + " s" + (b.cpu_percent_limit === null ? "" : ", at most " + count(b.cpu_percent_limit) + "%"), { kind: "number" }],
          ["Unread messages", ([b]) => b.messages_limit === null ? "" : "at most " + count(b.messages_limit) + ", then " + b.over_messages],
          ["Limits reached", ([b]) => count(reached(b)), { kind: "number" }],
          ["Largest processes", ([b]) => b.largest.slice(0, 5).flatMap((p, i) => [i ? ", " : "", pidLink(p.pid, "b" + b.number + p.pid), " " + bytes(p.memory_bytes)])]], tops)];
    },
  },
  flame: {
    title: "Flame graphs",
    load: async (kind, fresh) => ask("flame", { kind: kind || "time", again: fresh ? null : 1 }),
    show: (a, kind) => [
      tabs("What is shown", "flame", [["time", "Time"], ["allocation", "Allocation"], ["copies", "Copies"]], kind || "time"),
      h("p", { class: "note" }, { time: "Time that schedulers spend, by samples taken since this view was opened.", allocation: "Bytes that processes filled heaps with, by samples since the start.", copies: "Bytes that were copied between processes, tables and timers since the start." }[a.kind] +
        " All: " + unit(a)(a.total) + (a.left_out ? "; not drawn: " + unit(a)(a.left_out) : "") + ". Arrow keys move between frames, Enter shows one in full width, Escape all."),
      flame(a), heaviest(a)],
  },
  trace: {
    title: "Trace of a function",
    load: async () => tracing = await ask("trace"),
    again: () => tracing && (tracing.on || tracing.set) ? 1000 : 5000,
    show: (a) => {
      const st = state("trace", { function: "", calls: 100, seconds: 10 });
      const keep = (name) => (e) => { st[name] = e.target.value; };
      const begin = async (e) => {
        e.preventDefault();
        try { tracing = await ask("trace-begin", { function: st.function, calls: st.calls, seconds: st.seconds }, "POST"); say("The trace is on"); reload(); } catch (x) { failed(x); }
      };
      const stop = async () => { try { await ask("trace-end", {}, "POST"); say("The trace is off"); reload(); } catch (x) { failed(x); } };
      return [
        h("p", { class: "note" }, "The program runs on meanwhile. The trace is off after so many calls or seconds, or when this page is closed."),
        h("form", { submit: begin },
          h("label", {}, "Function, as module:function/arity or Module.function/arity", h("input", { class: "wide", required: true, maxlength: 500, value: st.function, input: keep("function"), "data-k": "trace-function", autocomplete: "off", spellcheck: "false" })),
          h("label", {}, "Calls, at most 1000", h("input", { class: "narrow", type: "number", min: 1, max: 1000, value: st.calls, input: keep("calls"), "data-k": "trace-calls" })),
          h("label", {}, "Seconds, at most 60", h("input", { class: "narrow", type: "number", min: 1, max: 60, value: st.seconds, input: keep("seconds"), "data-k": "trace-seconds" })),
          h("button", { type: "submit", "data-k": "trace-begin" }, "Begin"),
          h("button", { type: "button", click: stop, disabled: !a.on, "data-k": "trace-end" }, "End")),
        a.function ? h("p", { id: "trace-state" }, h("span", { class: "code" }, a.function), a.on ? ": on for " + count(a.left_s) + " s more; " : ": off; ", count(a.count) + " calls seen.") : null,
        a.calls ? table("Calls", [["After", (r) => time(r.after_us / 1e6), { kind: "number" }], ["Process", (r) => pidLink(r.pid, "c" + r.after_us)],
          ["Function", (r) => r.function, { kind: "code" }], ["Arguments", (r) => r.arguments.join(", "), { kind: "code" }], ["Called from", (r) => r.caller ? place(r.caller) : "–", { kind: "code" }]], a.calls) : null];
    },
  },
};

// Pids within a text lead to their processes.
function linked(text, key) {
  return text.split(/(<0\.\d+\.\d+>)/).map((part, i) => i % 2 ? pidLink(part, key + "-" + i + "-") : part);
}

// ---- flame graphs

let zoom = [];
function unit(a) { return a.unit === "bytes" ? bytes : (n) => time(n / 1e6); }
function tree(a) {
  const root = { name: "all", value: 0, self: 0, children: new Map() };
  for (const [weight, ...frames] of a.stacks) {
    let at = root;
    at.value += weight;
    for (const f of frames) {
      if (!at.children.has(f)) at.children.set(f, { name: place(a.functions[f]), frame: a.functions[f], value: 0, self: 0, children: new Map() });
      at = at.children.get(f);
      at.value += weight;
    }
    at.self += weight;
  }
  return root;
}
function flame(a) {
  const root = tree(a), write = unit(a);
  if (!root.value) return h("p", {}, "Nothing was seen yet.");
  // What was shown in full width, as far as it is still there.
  let top = root;
  const path = [];
  for (const name of zoom) {
    const next = [...top.children.values()].find((c) => c.name === name);
    if (!next) break;
    path.push(top);
    top = next;
  }
  zoom.length = path.length;
  const box = h("div", { class: "flame", role: "group", "aria-label": "Flame graph of " + a.kind });
  const drawn = [];
  let depth = 0;
  const put = (node, level, left, width, names, above) => {
    if (width < 0.15 || drawn.length > 1500) return null;
    depth = Math.max(depth, level);
    const known = node.frame && /^(erlang|lists|maps|gen_server|gen_statem|gen|proc_lib|supervisor|ets|io|io_lib|file|Enum|GenServer|Task)[:.]/.test(node.frame.function);
    let sum = 0;
    for (const c of node.name) sum = (sum * 31 + c.charCodeAt(0)) & 0xffff;
    const text = node.name + ", " + write(node.value) + ", " + percent(node.value / root.value);
    const b = h("button", { type: "button", class: known ? "library" : "heat" + (sum % 6), tabindex: "-1", title: text, "aria-label": text, "data-k": "flame-" + names.join("/") }, node.name);
    b.style.left = left + "%";
    b.style.width = width + "%";
    b.style.top = level * 1.4 + "rem";
    b.addEventListener("click", () => { zoom = names.slice(1); redraw(); });
    const me = { b, above, children: [], level };
    drawn.push(me);
    let x = left;
    for (const c of [...node.children.values()].sort((p, q) => q.value - p.value)) {
      const w = width * c.value / node.value;
      const child = put(c, level + 1, x, w, names.concat(c.name), me);
      if (child) me.children.push(child);
      x += w;
    }
    return me;
  };
  let above = null;
  const names = ["all"];
  path.forEach((node, i) => {
    const only = Object.assign({}, node, { children: new Map() });
    above = put(only, i, 0, 100, names.slice(), above);
    names.push(zoom[i]);
  });
  const first = put(top, path.length, 0, 100, names, above);
  if (above && first) above.children.push(first);
  box.style.height = (depth + 1) * 1.4 + "rem";
  for (const d of drawn) {
    box.append(d.b);
    d.b.addEventListener("keydown", (e) => {
      const row = d.above ? d.above.children : [d];
      const i = row.indexOf(d);
      const to = { ArrowDown: d.children[0], ArrowUp: d.above, ArrowRight: row[i + 1], ArrowLeft: row[i - 1] }[e.key];
      if (e.key === "Escape") { zoom = []; redraw(); } else if (to) { to.b.focus(); } else return;
      e.preventDefault();
    });
  }
  if (first) first.b.tabIndex = 0;
  return box;
}
function heaviest(a) {
  const root = tree(a), write = unit(a), all = new Map();
  const walk = (node, open) => {
    const name = node.name, first = !open.has(name);
    if (node.frame) {
      const t = all.get(name) || { name, self: 0, total: 0 };
      t.self += node.self;
      if (first) t.total += node.value;
      all.set(name, t);
    }
    open.add(name);
    for (const c of node.children.values()) walk(c, open);
    if (first) open.delete(name);
  };
  walk(root, new Set());
  const rows = [...all.values()].sort((x, y) => y.self - x.self || y.total - x.total).slice(0, 30);
  return [h("h3", {}, "Lines that take most"),
    table("Lines that take most", [["Line", (r) => r.name, { kind: "code" }], ["Itself", (r) => bar(r.self / root.value, write(r.self))],
      ["With what it calls", (r) => write(r.total), { kind: "number" }]], rows)];
}

// ---- which view is shown, and when it asks again

let current = { name: "overview", argument: "", answer: null };
let timers = { overview: null, view: null };
let paused = false;
let turn = 0;

function wanted() {
  const [name, ...rest] = location.hash.slice(1).split("/");
  let argument = rest.join("/");
  try { argument = decodeURIComponent(argument); } catch { argument = ""; }
  return views[name] ? { name, argument } : { name: "overview", argument: "" };
}
function redraw() {
  const view = views[current.name];
  if (!current.answer || !overview) return;
  const active = document.activeElement;
  const k = active && active !== document.body ? active.getAttribute("data-k") : null;
  const at = k && ["search", "text"].includes(active.type) ? [active.selectionStart, active.selectionEnd] : null;
  const typed = k && active.type === "search" ? active.value : null;
  const open = new Set([...document.querySelectorAll("details[open]")].map((d) => d.getAttribute("data-open")));
  const scrolled = new Map([...document.querySelectorAll(".scroll")].map((e) => [e.getAttribute("data-k"), e.scrollLeft]));
  const content = [h("h2", {}, view.title), view.show(current.answer, current.argument)];
  $("main").replaceChildren(...content.flat(9).filter((c) => c !== null && c !== undefined && c !== false));
  for (const d of document.querySelectorAll("details[data-open]")) d.open = open.has(d.getAttribute("data-open"));
  for (const e of document.querySelectorAll(".scroll")) e.scrollLeft = scrolled.get(e.getAttribute("data-k")) || 0;
  if (k) {
    const again = document.querySelector('[data-k="' + CSS.escape(k) + '"]');
    if (again && !again.disabled) {
      if (typed !== null && typed !== false) again.value = typed;
      again.focus({ preventScroll: true });
      if (at !== null) again.setSelectionRange(at[0], at[1]);
    }
  }
}
function later(which, ms, what) {
  clearTimeout(timers[which]);
  if (!ended && !paused && !document.hidden) timers[which] = setTimeout(what, ms);
}
async function lookOverview() {
  try {
    const o = await ask("overview", { again: 1 });
    remember(o);
    facts();
    if (!ended && !paused && $("status").textContent === "Connecting") say("Live");
    if (current.name === "overview") { current.answer = overview; redraw(); }
    later("overview", o.again_ms, lookOverview);
  } catch (e) { if (!ended) { failed(e); later("overview", 5000, lookOverview); } }
}
async function look(fresh) {
  const mine = ++turn, c = current, view = views[c.name];
  let again = 5000;
  try {
    const answer = await view.load(c.argument, fresh, c.answer);
    if (mine !== turn) return;
    c.answer = answer;
    again = view.again ? view.again() : answer.again_ms || 2000;
    document.body.setAttribute("data-shown", c.name + "/" + c.argument);
    redraw();
  } catch (e) {
    if (mine !== turn) return;
    failed(e);
    if (!c.answer) $("main").replaceChildren(h("h2", {}, view.title), h("p", {}, e.message));
  }
  later("view", again, () => look(false));
}
function reload() { look(true); }
function turnTo() {
  if (location.hash === "#main") return;
  const to = wanted();
  const first = current.answer === null;
  current = { ...to, answer: null };
  zoom = [];
  const parent = views[to.name].parent || to.name;
  for (const a of $("nav").querySelectorAll("a")) {
    if (a.getAttribute("href") === "#" + parent) a.setAttribute("aria-current", "page"); else a.removeAttribute("aria-current");
  }
  if (!first) $("main").focus({ preventScroll: true });
  if (overview) look(true);
}

async function start() {
  for (const [name, title] of VIEWS) $("nav").append(h("li", {}, h("a", { href: "#" + name }, title)));
  $("skip").addEventListener("click", (e) => { e.preventDefault(); $("main").focus(); });
  $("pause").addEventListener("click", () => {
    paused = !paused;
    $("pause").setAttribute("aria-pressed", String(paused));
    $("pause").textContent = paused ? "Go on" : "Pause";
    say(paused ? "Paused" : "Live");
    clearTimeout(timers.overview); clearTimeout(timers.view);
    if (!paused) { lookOverview(); look(false); }
  });
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timers.overview); clearTimeout(timers.view);
    if (!document.hidden && !paused && !ended && key) { lookOverview(); look(false); }
  });
  const token = location.hash.slice(1);
  if (/^[0-9a-f]{48}$/.test(token)) {
    // It must not stay in the history.
    window.history.replaceState(null, "", "#overview");
    try {
      key = (await ask("key", { token }, "POST")).key;
      sessionStorage.setItem("key", key);
    } catch (e) { if (e instanceof TypeError) return failed(e); }
  }
  key = key || sessionStorage.getItem("key");
  if (!key) return finish("This address was used before, or is none. Start purlin observe again, and open the address that it prints.");
  window.addEventListener("hashchange", turnTo);
  await lookOverview();
  if (ended) return;
  waitForEnd();
  turnTo();
}
start();
