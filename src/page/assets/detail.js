// One event: what was decided and why, what belongs to it, and all of its fields.

import { h } from "./dom.js";
import { kindOf } from "./rows.js";
import { address, read } from "./state.js";
import { bytes, full, VERDICTS, whole as number } from "./text.js";

/** Shows the answer of the server about an event of a source, a file where it is one; `close` goes back. */
export function show(host, answer, source, close) {
  const event = answer.event;
  const ledger = source && source !== "standard input" ? ` --ledger ${quoted(source)}` : "";
  host.replaceChildren(
    h("header", {}, h("h2", {}, kindOf(event.kind)), verdict(event), h("button", { type: "button", class: "quiet close", title: "Close (Esc)", "aria-label": "Close", on: { click: close } }, "×")),
    ...(answer.isCounted ? [h("p", { class: "notice" }, "No event has this id alone: it was made while these were counted as one.")] : []),
    h("p", { class: "lead" }, lead(event)),
    why(event),
    ...related(answer),
    h("h3", {}, "Ask more"),
    command(`postern ledger show ${event.id}${ledger}`),
    command(`postern policy explain --policy policy.yaml --event ${event.id}${ledger}`),
    h("h3", {}, "All fields"),
    h("dl", { class: "fields" }, fields(event, "")),
  );
  host.scrollTop = 0;
}

export function missing(host, close) {
  host.replaceChildren(h("header", {}, h("h2", {}, "No such event"), h("button", { type: "button", class: "quiet close", "aria-label": "Close", on: { click: close } }, "×")), h("p", {}, "It is not among the events that are shown: the newest 100,000 of this source."));
}

/** A word of a shell. */
const quoted = (word) => (/^[\w./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

const verdict = (event) => h("span", { class: "verdict", "data-verdict": event.decision.verdict }, VERDICTS[event.decision.verdict] ?? event.decision.verdict);

function lead(event) {
  const to = event.destination ? `${event.destination.host}:${event.destination.port}` : "";
  const at = to ? [" at ", h("b", {}, to)] : [];
  const times = event.count > 1 ? ` (${number(event.count)} times)` : "";
  if (event.toolCall) return [h("b", {}, event.toolCall.name), ...at, times];
  if (event.http) return [h("b", {}, `${event.http.method} ${event.http.path}`), ...at, event.http.status ? `: ${event.http.status}` : "", times];
  return [...at.slice(-1), times];
}

/** The rule and the reason, in words. */
function why(event) {
  const { rule, reason, enforcement, verdict } = event.decision;
  const parts = [];
  if (rule) parts.push(["Rule", h("a", { href: address({ ...read(), rule, event: undefined, view: "events" }), title: "All events of this rule" }, rule)]);
  else if (verdict === "Deny" || verdict === "WouldDeny") parts.push(["Rule", "none allows it"]);
  if (reason) parts.push(["Reason", reason]);
  if (event.destination?.reason) parts.push(["Connection", event.destination.reason]);
  if (enforcement === "Audit") parts.push(["Enforcement", "Audit: it went on, and the policy in Enforce would decide so"]);
  for (const finding of event.dlp ?? []) parts.push(["Found", `${finding.detector} in ${finding.location}: ${finding.action}`]);
  for (const change of event.transforms ?? []) parts.push(["Changed", changed(change)]);
  if (event.toolCall?.command) parts.push(["Command", h("code", {}, event.toolCall.command)]);
  if (event.toolCall?.input) parts.push(["Input", h("pre", {}, event.toolCall.input)]);
  if (event.usage) parts.push(["Tokens", tokens(event.usage)]);
  if (event.payload) parts.push(["Size", bytes(event.payload.bytes)]);
  parts.push(["When", event.last ? `${full(Date.parse(event.time))} to ${full(Date.parse(event.last))}` : full(Date.parse(event.time))]);
  return h("dl", { class: "why" }, parts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function tokens(usage) {
  const cached = usage.cacheReadTokens ? ` (${number(usage.cacheReadTokens)} from a cache)` : "";
  return `${number(usage.inputTokens ?? 0)} in${cached}, ${number(usage.outputTokens ?? 0)} out`;
}

function related(answer) {
  if (answer.related.length === 0) return [];
  const all = [...answer.related, { number: answer.number, event: answer.event }].sort((a, b) => a.number - b.number);
  const items = all.map(({ number: at, event }) => {
    const text = event.toolCall?.name ?? (event.http ? [event.http.status, event.http.method, event.http.path].filter(Boolean).join(" ") : "");
    const inside = [verdict(event), h("span", { class: "kind" }, kindOf(event.kind)), h("span", { class: "what" }, text)];
    return h("li", {}, at === answer.number ? h("span", { class: "here", "aria-current": "true" }, inside) : h("a", { href: address({ ...read(), event: event.id }) }, inside));
  });
  return [h("h3", {}, answer.event.exchange ? "The same exchange" : "The same connection"), h("ol", { class: "related" }, items)];
}

function command(text) {
  const copy = async (event) => {
    await navigator.clipboard.writeText(text);
    event.target.textContent = "Copied";
  };
  return h("p", { class: "command" }, h("code", {}, text), h("button", { type: "button", class: "quiet", on: { click: copy } }, "Copy"));
}

/** Every field on a line, by its dotted path. */
function fields(value, path) {
  if (value === null || typeof value !== "object") return [h("div", {}, h("dt", {}, path), h("dd", {}, String(value)))];
  return Object.entries(value).flatMap(([key, inner]) => fields(inner, path ? `${path}.${key}` : key));
}

/** What was changed; of a result that was shortened, from how many bytes to how many. */
function changed({ name, detail, before, after }) {
  const sizes = name.startsWith("tool-output-") && before && after ? `${bytes(before.bytes)} became ${bytes(after.bytes)}` : "";
  return [name, detail, sizes].filter(Boolean).join(": ");
}
