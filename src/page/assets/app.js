// Joins the parts of the page.

import { Bars, bin, bins } from "./charts.js";
import * as detail from "./detail.js";
import { $, h, setText } from "./dom.js";
import { Events, follow, whole as ask } from "./events.js";
import { List } from "./list.js";
import * as panels from "./panels.js";
import * as rows from "./rows.js";
import * as sessions from "./sessions.js";
import { address, clearing, filter, FILTERS, go, hasFilter, read } from "./state.js";
import { positions, summarize } from "./summary.js";
import { full, moment, plural, whole, VERDICTS } from "./text.js";

const VIEWS = { sessions: "Sessions", events: "Events" };
const PALETTE = panels.PALETTE;

const events = new Events();
let state = read();
let found = [];
let summary = summarize(events, found);
let list;
let shown = {};
let source = { name: "", isCurrent: false, hasEnded: false, notes: [] };
let asked = 0;
let presented = null;

const activity = new Bars($("activity"), {
  height: 96,
  series: [{ color: "deny" }, { color: "would-bar" }, { color: "allow" }],
  chosen: (from, to) => go({ from, to }),
  hover: caption,
});
const tokens = new Bars($("tokens"), { height: 84, series: PALETTE.map((color) => ({ color })) });
let scale = { start: 0, step: 1, count: 0 };
let activityCounts = [[], [], []];

// ---- what is shown

/** Everything that hangs on the events that fit. `added`: how many came since. */
function render(added = 0) {
  const fits = filter(events, state);
  const before = found.length;
  if (added > 0 && before > 0) for (let at = events.size - added; at < events.size; at++) fits(at) && found.push(at);
  else found = positions(events, fits);
  summary = summarize(events, found);
  panels.tiles($("tiles"), summary);
  panels.rules($("rules"), events, summary.rules);
  panels.models($("models"), events, summary.models);
  panels.counts($("hosts"), events, "host", summary.hosts, "No connection was made.");
  panels.counts($("tools"), events, "tool", summary.tools, "No tool was called.");
  drawCharts();
  showList(added > 0 ? found.length - before : 0);
}

function drawCharts() {
  const most = Math.max(20, Math.min(160, Math.floor($("activity").clientWidth / 8)));
  const time = bins(events, found, most);
  scale = bins(events, found, sessions.PARTS);
  const zeros = () => new Array(time.count).fill(0);
  activityCounts = [zeros(), zeros(), zeros()];
  const [deny, would] = [events.id("Deny"), events.id("WouldDeny")];
  const few = bins(events, found, 40);
  const models = summary.models.slice(0, PALETTE.length - 1).map((model) => model.id);
  const used = PALETTE.map(() => new Array(few.count).fill(0));
  for (const at of found) {
    const verdict = events.verdict[at];
    activityCounts[verdict === deny ? 0 : verdict === would ? 1 : 2][bin(time, events.time[at])] += events.count[at];
    const spent = events.inputTokens[at] + events.outputTokens[at];
    if (spent) {
      const model = models.indexOf(events.model[at]);
      used[model < 0 ? PALETTE.length - 1 : model][bin(few, events.time[at])] += spent;
    }
  }
  activity.show(time, activityCounts);
  $("activity").classList.toggle("void", found.length === 0);
  $("tokens").hidden = summary.models.length === 0;
  tokens.show(few, used);
  caption(null);
}

/** Says what a bar of the activity stands for. */
function caption(at) {
  const time = activity?.bins;
  if (at === null || at === undefined || !time || at >= time.count) {
    setText($("activity-caption"), found.length ? "drag to choose a time" : "");
    return;
  }
  const [denied, would, rest] = activityCounts.map((counts) => counts[at]);
  const words = [plural(denied + would + rest, "event"), denied && `${whole(denied)} denied`, would && `${whole(would)} would be denied`].filter(Boolean);
  setText($("activity-caption"), `${moment((time.start + at * time.step) * 1000)}: ${words.join(", ")}`);
}

/** The list of the view; made anew where the view is another. */
function showList(above) {
  const view = state.view === "events" ? "events" : "sessions";
  if (shown.view !== view) {
    list?.close();
    $("grid").scrollTop = 0;
    $("grid").className = `grid ${view}`;
    $("grid").setAttribute("aria-label", VIEWS[view]);
    const parts = view === "events" ? { head: rows.HEAD, height: rows.HEIGHT, row: () => rows.row(events), open: (at) => openNumber(events.first + at) } : { head: sessions.HEAD, height: sessions.HEIGHT, row: () => sessions.row(events, () => scale), open: (session) => (location.hash = sessions.link(events, session)) };
    const head = parts.head.map((text) => h("div", { class: "cell", role: "columnheader" }, text));
    list = new List($("grid"), { ...parts, head, empty: h("p", {}) });
  }
  if (shown.view !== view || shown.filter !== filterText()) above = 0;
  if (shown.filter !== filterText()) {
    list.selected = -1;
    $("grid").scrollTop = 0;
  }
  shown = { view, filter: filterText() };
  const items = view === "events" ? found.toReversed() : summary.sessions;
  emptyText();
  list.show(items, view === "events" ? above : 0);
  showTabs(view);
  showSession(view);
}

const filterText = () => JSON.stringify({ ...state, event: undefined, theme: undefined });

function emptyText() {
  const clear = h("button", { type: "button", on: { click: () => go({ ...clearing(), event: undefined }) } }, "Clear all filters");
  const [title, more] = events.size > 0 ? ["No event fits.", hasFilter(state) && clear] : source.hasEnded ? [`There is no event in ${source.name}.`, null] : !source.isCurrent ? ["Reading …", null] : [`No event yet in ${source.name}.`, "The page shows the first one as it comes."];
  list.empty.replaceChildren(h("p", {}, title), ...(more ? [h("p", { class: "muted" }, more)] : []));
}

function showTabs(view) {
  const counts = { sessions: summary.sessions.length, events: found.length };
  const tabs = Object.entries(VIEWS).map(([name, text]) => h("a", { role: "tab", href: address({ ...state, view: name, event: undefined }), "aria-selected": String(name === view) }, text, h("span", { class: "count" }, whole(counts[name]))));
  $("tabs").replaceChildren(...tabs);
}

/** Of a session that is opened: its name, and the way back. */
function showSession(view) {
  const host = $("session");
  host.hidden = view !== "events" || state.session === undefined;
  if (host.hidden) return;
  const back = h("a", { href: address({ ...state, ...clearing(), view: undefined, event: undefined }) }, "← All sessions");
  const one = summary.sessions.find((session) => events.texts[session.label] === state.session);
  host.replaceChildren(back, h("b", { class: "name", title: state.session }, state.session || "Events without a label"), ...(one ? [h("span", { class: "muted about" }, sessions.subtitle(events, one))] : []));
}

// ---- filters

function showFilters() {
  if (document.activeElement !== $("search")) $("search").value = state.q ?? "";
  const verdicts = [undefined, "Deny", "WouldDeny", "Audit", "Allow"];
  $("verdicts").replaceChildren(...verdicts.map((word) => h("button", { type: "button", "aria-pressed": String(state.verdict === word), "data-verdict": word, on: { click: () => go({ verdict: word }) } }, word ? VERDICTS[word] : "All")));
  const chips = Object.entries(FILTERS).filter(([name]) => state[name] !== undefined).map(([name, word]) => chip(word, state[name] || "none", { [name]: undefined }));
  if (state.from || state.to) chips.push(chip("time", `${state.from ? moment(Number(state.from)) : "…"} – ${state.to ? moment(Number(state.to)) : "…"}`, { from: undefined, to: undefined }));
  if (hasFilter(state)) chips.push(h("button", { type: "button", class: "quiet", title: "Clear all filters (x)", on: { click: () => go(clearing()) } }, "Clear"));
  $("chips").replaceChildren(...chips);
}

function chip(word, text, change) {
  return h("span", { class: "chip", title: text }, h("span", { class: "muted" }, word), h("span", { class: "text" }, text), h("button", { type: "button", "aria-label": `Without this ${word}`, on: { click: () => go(change) } }, "×"));
}

// ---- one event

async function openNumber(number) {
  const turn = ++asked;
  const answer = await ask(`number=${number}`).catch(() => null);
  if (turn === asked && answer) {
    shown.event = answer.event.id;
    go({ event: answer.event.id });
    present(answer);
  }
}

async function showEvent() {
  const open = state.event;
  if (open === shown.event) return;
  shown.event = open;
  if (open === undefined) {
    $("detail").hidden = true;
    $("aside").inert = false;
    document.body.classList.remove("detailed");
    return;
  }
  const turn = ++asked;
  const answer = await ask(`id=${encodeURIComponent(open)}`).catch(() => null);
  if (turn === asked) present(answer);
}

function present(answer) {
  presented = answer;
  const close = () => go({ event: undefined });
  $("detail").hidden = false;
  document.body.classList.add("detailed");
  if (answer) detail.show($("detail"), answer, source.name, close);
  else detail.missing($("detail"), close);
}

// ---- the source

function showSource(answer) {
  const isNamed = source.name === "" && answer.source.name !== "";
  source = answer.source;
  // An event that a link opened came before the name of the source, which its commands have.
  if (isNamed && presented && !$("detail").hidden) present(presented);
  const word = source.hasEnded ? "ended" : source.isCurrent ? "live" : "reading";
  $("source").dataset.state = word;
  setText($("source"), `${word} · ${source.name}`, true);
  const kept = events.size ? `${plural(events.size, "event")}, the last at ${moment(events.time[events.size - 1])}` : "";
  setText($("counted"), kept);
  const dropped = answer.oldest ? [`The newest ${whole(events.size)} events are shown; ${whole(answer.oldest)} older ones were read and let go.`] : [];
  notice([...dropped, ...source.notes]);
}

function notice(texts) {
  $("notice").hidden = texts.length === 0;
  setText($("notice"), texts.join(" "));
}

function lost() {
  $("source").dataset.state = "lost";
  setText($("source"), "no answer");
  notice(["The server of this page has ended, or cannot be reached. What is shown stays; it is asked again every two seconds."]);
}

// ---- keys and wiring

const KEYS = {
  "/": () => $("search").focus(),
  j: () => list.choose(list.selected + 1),
  k: () => list.choose(list.selected - 1),
  ArrowDown: () => list.choose(list.selected + 1),
  ArrowUp: () => list.choose(list.selected - 1),
  PageDown: () => list.choose(list.selected + 10),
  PageUp: () => list.choose(list.selected - 10),
  Home: () => list.choose(0),
  End: () => list.choose(Infinity),
  Enter: () => list.choose(Math.max(list.selected, 0), true),
  Escape: back,
  1: () => go({ view: undefined, event: undefined }),
  2: () => go({ view: "events", event: undefined }),
  d: () => go({ verdict: state.verdict === "Deny" ? undefined : "Deny" }),
  x: () => go(clearing()),
  t: toggleTheme,
  "?": () => $("help").showModal(),
};

function back() {
  if (state.event) go({ event: undefined });
  else if (state.session !== undefined) go({ ...clearing(), view: undefined });
}

const NEEDS_GRID = new Set(["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End", "Enter"]);

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  if (event.target.closest("input")) {
    if (event.key === "Escape" || event.key === "Enter") {
      event.target.blur();
      $("grid").focus();
      event.preventDefault();
    }
    return;
  }
  if (NEEDS_GRID.has(event.key) && event.target !== $("grid") && event.target !== document.body) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

function toggleTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = state.theme ?? (dark ? "dark" : "light");
  go({ theme: now === "dark" ? "light" : "dark" }, true);
}

function showTheme() {
  if (document.documentElement.dataset.theme === (state.theme ?? "")) return;
  document.documentElement.dataset.theme = state.theme ?? "";
  activity.redraw();
  tokens.redraw();
}

addEventListener("hashchange", () => {
  const before = filterText() + shown.view;
  state = read();
  showTheme();
  showFilters();
  if (filterText() + (state.view === "events" ? "events" : "sessions") !== before) render();
  showEvent();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => [activity, tokens].forEach((chart) => chart.redraw()));
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("search").addEventListener("input", () => go({ q: $("search").value || undefined }, true));
$("theme").addEventListener("click", toggleTheme);
$("keys").addEventListener("click", () => $("help").showModal());

showTheme();
showFilters();
render();
showEvent();

let drawn = 0;
let waiting = false;

/** Shows what came, once a frame. */
function changed(answer, moved) {
  showSource(answer);
  if (moved) drawn = 0;
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    const added = events.size - drawn;
    if (added > 0 || drawn === 0) render(drawn > 0 ? added : 0);
    drawn = events.size;
    document.documentElement.dataset.events = drawn;
  });
}

follow(events, changed, lost);
