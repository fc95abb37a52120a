// The list of events, the newest first.

import { h, setText, visible } from "./dom.js";
import { bytes, compact, full, moment, short, VERDICTS } from "./text.js";

/** The height of a row, in rem. */
export const HEIGHT = 2.125;

export const HEAD = ["Time", "Verdict", "Event", "Host", "Rule and reason", "Size"];

/** What an event is about, in a few words. */
export function subject(events, at) {
  const kind = events.text("kind", at);
  const request = events.text("request", at);
  if (kind === "ToolCall") return events.text("tool", at) || "a tool call";
  if (kind === "Connection") return { Inspect: "inspected", Tunnel: "tunnelled", Deny: "refused" }[events.text("action", at)] ?? "connection";
  if (kind === "Response" && events.status[at]) return `${events.status[at]}  ${request}`;
  return request || events.text("reason", at) || kind;
}

const KINDS = { ToolCall: "Tool call" };
export const kindOf = (kind) => KINDS[kind] ?? kind;

function size(events, at) {
  if (events.inputTokens[at] || events.outputTokens[at]) return `${compact(events.inputTokens[at])} → ${compact(events.outputTokens[at])}`;
  return events.bytes[at] ? bytes(events.bytes[at]) : "";
}

/** Makes a row. An item is a position. */
export function row(events) {
  const time = h("div", { class: "cell time", role: "gridcell" });
  const verdict = h("span", { class: "verdict" });
  const kind = h("span", { class: "kind" });
  const what = h("span", { class: "what" });
  const model = h("span", { class: "muted model" });
  const times = h("span", { class: "times" });
  const host = h("div", { class: "cell host", role: "gridcell" });
  const rule = h("span", { class: "rule" });
  const reason = h("span", { class: "muted" });
  const weight = h("div", { class: "cell number", role: "gridcell" });
  const element = h("div", { class: "row", role: "row" }, time, h("div", { class: "cell", role: "gridcell" }, verdict), h("div", { class: "cell subject", role: "gridcell" }, kind, what, model, times), host, h("div", { class: "cell why", role: "gridcell" }, rule, reason), weight);
  const show = (at) => {
    const word = events.text("verdict", at);
    setText(time, moment(events.time[at]));
    time.title = full(events.time[at]);
    setText(verdict, VERDICTS[word] ?? word);
    verdict.dataset.verdict = word;
    setText(kind, kindOf(events.text("kind", at)));
    setText(what, subject(events, at), true);
    setText(model, events.tool[at] ? "" : events.text("model", at));
    setText(times, events.count[at] > 1 ? `×${short(events.count[at])}` : "");
    setText(host, events.text("host", at).replace(/:443$/, ""), true);
    const id = events.text("rule", at);
    setText(rule, id.split("/").at(-1));
    rule.title = visible(id);
    setText(reason, events.text("reason", at), true);
    setText(weight, size(events, at));
    weight.title = events.inputTokens[at] || events.outputTokens[at] ? "tokens in → out" : "bytes";
    // Neighbours of one exchange belong together.
    element.dataset.exchange = events.exchange[at] ? events.exchange[at] % 2 : "";
  };
  return { element, show };
}
