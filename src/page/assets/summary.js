// Sums up the events that fit: sessions, rules, hosts, models, tools.

/** The positions of the events that fit, in their order. */
export function positions(events, fits) {
  const found = [];
  for (let at = 0; at < events.size; at++) if (fits(at)) found.push(at);
  return found;
}

/** Everything that is counted, in one pass. */
export function summarize(events, found) {
  const word = Object.fromEntries(["Request", "ToolCall", "Deny", "WouldDeny"].map((text) => [text, events.id(text)]));
  const total = { events: 0, requests: 0, calls: 0, denied: 0, wouldDeny: 0, input: 0, cached: 0, output: 0 };
  const [sessions, rules, hosts, models, tools] = [new Map(), new Map(), new Map(), new Map(), new Map()];
  for (const at of found) {
    const [kind, verdict, count] = [events.kind[at], events.verdict[at], events.count[at]];
    const session = ofSession(sessions, events, at);
    const [denied, wouldDeny] = [verdict === word.Deny ? count : 0, verdict === word.WouldDeny ? count : 0];
    const [requests, calls] = [kind === word.Request ? count : 0, kind === word.ToolCall ? count : 0];
    const [input, cached, output] = [events.inputTokens[at], events.cachedTokens[at], events.outputTokens[at]];
    for (const sum of [total, session]) {
      sum.events += count;
      sum.requests += requests;
      sum.calls += calls;
      sum.denied += denied;
      sum.wouldDeny += wouldDeny;
      sum.input += input;
      sum.cached += cached;
      sum.output += output;
    }
    if (denied + wouldDeny > 0) {
      const rule = of(rules, events.rule[at]);
      rule.denied += denied;
      rule.wouldDeny += wouldDeny;
    }
    if (events.host[at]) tally(of(hosts, events.host[at]), count, denied);
    if (calls && events.tool[at]) tally(of(tools, events.tool[at]), count, denied);
    if (events.model[at] && (input || output)) {
      const model = of(models, events.model[at]);
      model.count += count;
      model.input += input;
      model.cached += cached;
      model.output += output;
      session.models.add(events.model[at]);
    }
  }
  return { total, sessions: byTime(sessions), rules: most(rules, (rule) => rule.denied + rule.wouldDeny), hosts: most(hosts, (host) => host.count), models: most(models, (model) => model.input + model.output), tools: most(tools, (tool) => tool.count) };
}

/** Events with the same label and pod are a session; those without a label belong to a start of their gateway. */
function ofSession(sessions, events, at) {
  const [label, pod] = [events.session[at], events.pod[at]];
  const start = label ? 0 : events.start[at];
  const key = `${label} ${pod} ${start}`;
  let session = sessions.get(key);
  if (!session) {
    session = { key, label, pod, start, positions: [], models: new Set(), events: 0, requests: 0, calls: 0, denied: 0, wouldDeny: 0, input: 0, cached: 0, output: 0, first: Infinity, last: 0 };
    sessions.set(key, session);
  }
  session.positions.push(at);
  session.first = Math.min(session.first, events.time[at]);
  session.last = Math.max(session.last, events.time[at]);
  return session;
}

function of(map, id) {
  let sum = map.get(id);
  if (!sum) map.set(id, (sum = { id, count: 0, denied: 0, wouldDeny: 0, input: 0, cached: 0, output: 0 }));
  return sum;
}

function tally(sum, count, denied) {
  sum.count += count;
  sum.denied += denied;
}

const most = (map, size) => [...map.values()].sort((a, b) => size(b) - size(a));
const byTime = (map) => [...map.values()].sort((a, b) => b.last - a.last);
