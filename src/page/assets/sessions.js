// The list of sessions, each on a time line.

import { bin } from "./charts.js";
import { h, setText, svg } from "./dom.js";
import { address, clearing, read } from "./state.js";
import { clock, duration, full, moment, plural, short } from "./text.js";

/** How many parts the time line of a session has at most. */
export const PARTS = 96;

/** The height of a row, in rem. */
export const HEIGHT = 3;

export const HEAD = ["Session", "Time line", "Requests", "Calls", "Denied", "Tokens", "Last event"];

/** What a session is called. */
export function title(events, session) {
  if (session.label) return events.texts[session.label];
  return "no label";
}

/** Where it ran, and which models answered. */
export function subtitle(events, session) {
  const pod = events.texts[session.pod];
  const models = [...session.models].map((id) => events.texts[id]);
  return [pod, models.slice(0, 2).join(", ") + (models.length > 2 ? ` and ${models.length - 2} more` : ""), `${clock(session.first)}, ${duration(session.last - session.first)}`].filter(Boolean).join(" · ");
}

/** The words of the address by which a session is filtered. */
export function words(events, session) {
  const pod = events.texts[session.pod] || undefined;
  const start = session.label ? undefined : events.texts[session.start] || undefined;
  return { view: "events", session: events.texts[session.label], pod, start };
}

export const link = (events, session) => address({ ...read(), ...clearing(), from: read().from, to: read().to, event: undefined, ...words(events, session) });

/** Makes a row. `scale()` gives the bins that all rows share. */
export function row(events, scale) {
  // Arrows and Enter open a row: Tab goes on to what is behind the list.
  const name = h("a", { class: "name", tabindex: "-1" });
  const about = h("span", { class: "muted about" });
  const lane = svg("svg", { class: "lane", viewBox: `0 0 ${PARTS} 20`, preserveAspectRatio: "none", role: "img" });
  const paths = ["base", "allow", "would", "deny"].map((kind) => lane.appendChild(svg("path", { class: kind })));
  const cells = ["number", "number", "number denied", "number tokens", "number last"].map((kind) => h("div", { class: `cell ${kind}`, role: "gridcell" }));
  const element = h("div", { class: "row two", role: "row" }, h("div", { class: "cell subject", role: "gridcell" }, name, about), h("div", { class: "cell line", role: "gridcell" }, lane), cells);
  const show = (session) => {
    setText(name, title(events, session), true);
    name.classList.toggle("unnamed", !session.label);
    name.href = link(events, session);
    setText(about, subtitle(events, session), true);
    const figures = [short(session.requests), short(session.calls), session.denied ? short(session.denied) : session.wouldDeny ? `(${short(session.wouldDeny)})` : "–", session.input + session.output ? short(session.input + session.output) : "–", moment(session.last)];
    cells.forEach((cell, at) => setText(cell, figures[at]));
    cells[2].classList.toggle("deny", session.denied > 0);
    cells[2].classList.toggle("would", session.denied === 0 && session.wouldDeny > 0);
    cells[2].title = session.wouldDeny ? `${plural(session.denied, "denied", "denied")}, ${session.wouldDeny} would be` : "";
    cells[4].title = full(session.last);
    const drawn = draw(events, session, scale());
    paths.forEach((path, at) => path.setAttribute("d", drawn[at]));
    lane.setAttribute("aria-label", `${plural(session.events, "event")} from ${clock(session.first)} to ${clock(session.last)}, ${session.denied} denied`);
  };
  return { element, show };
}

/** The paths of a session's time line: the time that it lasted, and its events by what was decided. */
function draw(events, session, bins) {
  const scale = PARTS / Math.max(bins.count, 1);
  const counts = new Map();
  const [deny, would] = [events.id("Deny"), events.id("WouldDeny")];
  for (const at of session.positions) {
    const part = bin(bins, events.time[at]);
    let one = counts.get(part);
    if (!one) counts.set(part, (one = [0, 0, 0]));
    const verdict = events.verdict[at];
    one[verdict === deny ? 2 : verdict === would ? 1 : 0] += events.count[at];
  }
  const [first, last] = [bin(bins, session.first), bin(bins, session.last)];
  const base = `M${first * scale} 19h${(last - first + 1) * scale}v1h${-(last - first + 1) * scale}z`;
  const paths = ["", "", ""];
  for (const [part, one] of counts) {
    const [x, width] = [part * scale + 0.1 * scale, Math.max(0.8 * scale, 0.4)];
    let y = 19;
    const sum = one[0] + one[1] + one[2];
    // A logarithm, so that one denial is seen beside a thousand requests.
    const full = Math.min(19, 6 + 5 * Math.log10(sum));
    for (const kind of [2, 1, 0]) {
      if (!one[kind]) continue;
      const height = kind === 0 ? full - (19 - y) : Math.max(4, (full * one[kind]) / sum);
      if (height <= 0) continue;
      paths[kind] += `M${x.toFixed(2)} ${y.toFixed(2)}h${width.toFixed(2)}v${(-height).toFixed(2)}h${(-width).toFixed(2)}z`;
      y -= height;
    }
  }
  return [base, ...paths];
}
