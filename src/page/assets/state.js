// What is looked at: filters, view and open event, which the address bar holds.

/** Columns by which events are filtered, with the word that a chip shows. */
export const FILTERS = { session: "session", pod: "pod", start: "start", kind: "kind", rule: "rule", host: "host", model: "model", tool: "tool" };
const WORDS = ["view", "verdict", "q", "from", "to", "event", "theme"];

/** The state as the address bar says it. A `session` that is there and empty is that of events without a label. */
export function read() {
  const words = new URLSearchParams(location.hash.slice(1));
  const state = {};
  for (const name of [...WORDS, ...Object.keys(FILTERS)]) if (words.has(name)) state[name] = words.get(name);
  return state;
}

/** The address of a state. */
export function address(state) {
  const words = new URLSearchParams();
  for (const name of [...WORDS, ...Object.keys(FILTERS)]) if (state[name] !== undefined) words.set(name, state[name]);
  return `#${words}`;
}

/** Goes to a state that changes these words; undefined takes one away. `replaces`: "back" does not come back here. */
export function go(change, replaces = false) {
  const next = address({ ...read(), ...change });
  if (next === (location.hash || "#")) return;
  history[replaces ? "replaceState" : "pushState"](null, "", next);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** The words that are filters and not the view. */
export function clearing() {
  return Object.fromEntries(["verdict", "q", "from", "to", ...Object.keys(FILTERS)].map((name) => [name, undefined]));
}

export function hasFilter(state) {
  return Object.keys(clearing()).some((name) => state[name] !== undefined);
}

/** Makes a function that says whether the event at a position fits. */
export function filter(events, state) {
  const checks = [];
  for (const name of Object.keys(FILTERS)) {
    if (state[name] === undefined) continue;
    const [column, id] = [events[name], events.id(state[name])];
    checks.push((at) => column[at] === id);
  }
  if (state.verdict !== undefined) {
    const ids = new Set(state.verdict.split(",").map((word) => events.id(word)));
    checks.push((at) => ids.has(events.verdict[at]));
  }
  const [from, to] = [Number(state.from), Number(state.to)];
  if (state.from) checks.push((at) => events.time[at] >= from);
  if (state.to) checks.push((at) => events.time[at] < to);
  if (state.q) checks.push(search(events, state.q));
  if (checks.length === 0) return () => true;
  return (at) => checks.every((check) => check(at));
}

const SEARCHED = ["kind", "verdict", "session", "pod", "host", "rule", "reason", "request", "api", "model", "tool"];

/** Each text is searched once, whatever number of events have it. */
function search(events, words) {
  const wanted = words.toLowerCase();
  const known = [];
  const holds = (id) => (known[id] ??= events.texts[id].toLowerCase().includes(wanted));
  const columns = SEARCHED.map((name) => events[name]);
  return (at) => columns.some((column) => holds(column[at]));
}
