// What is beside the list: tiles, and bars by rule, host, model and tool.

import { h } from "./dom.js";
import { go, read } from "./state.js";
import { plural, short, whole } from "./text.js";

const SHOWN = 8;

/** The colours of the models with the most tokens; the last is that of all others. */
export const PALETTE = ["model-1", "model-2", "model-3", "model-4", "model-5"];

/** The figures at the top. */
export function tiles(host, { total, sessions }) {
  const share = total.cached ? `${Math.round((100 * total.cached) / total.input)} % from caches` : "";
  const would = total.wouldDeny ? `${short(total.wouldDeny)} more would be` : "";
  const unlabelled = sessions.filter((session) => !session.label).length;
  const figures = [
    ["Sessions", short(sessions.filter((session) => session.label).length), unlabelled ? `and ${short(unlabelled)} without a label` : ""],
    ["Requests", short(total.requests), ""],
    ["Tool calls", short(total.calls), ""],
    ["Denied", short(total.denied), would, total.denied ? "deny" : ""],
    ["Tokens in", short(total.input), share],
    ["Tokens out", short(total.output), ""],
  ];
  host.replaceChildren(...figures.map(([name, value, note, kind]) => h("div", { class: `tile ${kind ?? ""}` }, h("dt", {}, name), h("dd", {}, value, note && h("small", {}, note)))));
}

/** Bars of one column: each is a button that filters by its text. `parts` gives the widths of a bar's parts and its words. */
function bars(host, events, column, sums, parts, nothing) {
  const focused = document.activeElement?.closest?.(`#${host.id} button`)?.dataset.id;
  const most = Math.max(1, ...sums.map((sum) => parts(sum).widths.reduce((all, [, width]) => all + width, 0)));
  const chosen = read()[column];
  const rows = sums.slice(0, SHOWN).map((sum, place) => {
    const text = events.texts[sum.id];
    const { widths, words, about } = parts(sum);
    const bar = h("span", { class: "bar", "aria-hidden": "true" }, widths.filter(([, width]) => width > 0).map(([kind, width]) => {
      const part = h("i", { class: kind });
      if (column === "model") part.style.setProperty("--model", colorOf(place));
      part.style.width = `${(100 * width) / most}%`;
      return part;
    }));
    const pressed = chosen === text;
    const filter = () => go({ [column]: pressed ? undefined : text });
    return h("button", { type: "button", class: "measure", title: `${text}\n${about}`, "aria-pressed": String(pressed), "data-id": sum.id, on: { click: filter } }, h("span", { class: "label" }, column === "model" && swatch(place), shown(column, text)), h("span", { class: "value" }, words), bar);
  });
  const rest = sums.length - SHOWN;
  host.replaceChildren(...rows, ...(rest > 0 ? [h("p", { class: "muted rest" }, `and ${plural(rest, "other")}`)] : []), ...(rows.length === 0 ? [h("p", { class: "muted nothing" }, nothing)] : []));
  if (focused) host.querySelector(`[data-id="${focused}"]`)?.focus();
}

const colorOf = (place) => `var(--${PALETTE[Math.min(place, PALETTE.length - 1)]})`;

/** The colour of a model in the chart. */
function swatch(place) {
  const mark = h("i", { class: "swatch", "aria-hidden": "true" });
  mark.style.setProperty("--model", colorOf(place));
  return mark;
}

/** A rule's own name comes first; the policy stands behind it. */
function shown(column, text) {
  if (column === "host") return text.replace(/:443$/, "");
  if (column !== "rule") return text || "–";
  if (!text) return "no rule allows it";
  const parts = text.split("/");
  return [parts.at(-1), parts.length > 1 && h("small", {}, parts.slice(0, -1).join("/"))];
}

export function rules(host, events, sums) {
  const parts = (sum) => ({ widths: [["deny", sum.denied], ["would", sum.wouldDeny]], words: short(sum.denied + sum.wouldDeny), about: `${whole(sum.denied)} denied, ${whole(sum.wouldDeny)} would be denied` });
  bars(host, events, "rule", sums, parts, "Nothing was denied.");
}

export function counts(host, events, column, sums, nothing) {
  const parts = (sum) => ({ widths: [["deny", sum.denied], ["allow", sum.count - sum.denied]], words: short(sum.count), about: `${plural(sum.count, "event")}, ${whole(sum.denied)} denied` });
  bars(host, events, column, sums, parts, nothing);
}

export function models(host, events, sums) {
  const parts = (sum) => ({
    widths: [["cached", sum.cached], ["spent", Math.max(sum.input - sum.cached, 0) + sum.output]],
    words: `${short(sum.input)} → ${short(sum.output)}`,
    about: `${whole(sum.input)} tokens in (${whole(sum.cached)} from caches), ${whole(sum.output)} out, ${plural(sum.count, "answer")}`,
  });
  bars(host, events, "model", sums, parts, "No answer of a model was read.");
}
