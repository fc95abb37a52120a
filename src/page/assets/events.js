// The events that the page knows: columns, filled from the server as they come.

const NUMBERS = ["time", "count", "status", "bytes", "inputTokens", "cachedTokens", "outputTokens"];
const TEXTS = ["kind", "verdict", "session", "pod", "start", "exchange", "host", "rule", "reason", "request", "api", "model", "tool", "action"];

/** The server keeps so many events, and so does the page, give or take. */
const SLACK = 20_000;

/** How many different texts are held before all of them are read anew. */
const MOST_TEXTS = 600_000;

/** Between two questions while nothing is missing, in milliseconds, so that a flood costs few turns. */
const PAUSE = 200;
const RETRY = 2000;

export class Events {
  constructor() {
    this.clear();
  }

  clear() {
    this.texts = [""];
    this.ids = new Map([["", 0]]);
    this.first = 0;
    this.size = 0;
    for (const name of [...NUMBERS, ...TEXTS]) this[name] = [];
  }

  /** The text of a column. */
  text(name, at) {
    return this.texts[this[name][at]];
  }

  /** The number of a text, or -1 where no event has it. */
  id(text) {
    return this.ids.get(text) ?? -1;
  }

  /** Adds rows as the server sends them. Returns whether older ones went, so that positions have changed. */
  append(answer) {
    const rows = answer.rows;
    const own = rows.texts.map((text) => {
      let id = this.ids.get(text);
      if (id === undefined) {
        id = this.texts.length;
        this.ids.set(text, id);
        this.texts.push(text);
      }
      return id;
    });
    if (this.size === 0) this.first = answer.first;
    for (const name of NUMBERS) for (const value of rows[name]) this[name].push(value);
    for (const name of TEXTS) for (const value of rows[name]) this[name].push(own[value]);
    this.size = this.time.length;
    return this.trim(answer.oldest);
  }

  trim(oldest) {
    const gone = Math.min(oldest - this.first, this.size);
    if (gone < SLACK) return false;
    for (const name of [...NUMBERS, ...TEXTS]) this[name] = this[name].slice(gone);
    this.first += gone;
    this.size -= gone;
    return true;
  }
}

/** Asks for rows for ever. `changed(answer, moved)` after each answer, `lost()` where the server does not answer. */
export async function follow(events, changed, lost) {
  let [from, change] = [0, 0];
  for (;;) {
    let answer;
    try {
      const response = await fetch(`events?from=${from}&change=${change}`, { cache: "no-store" });
      if (!response.ok) throw new Error(await response.text());
      answer = await response.json();
    } catch (error) {
      lost(error);
      await pause(RETRY);
      continue;
    }
    if (events.texts.length > MOST_TEXTS) {
      events.clear();
      [from, change] = [0, 0];
      continue;
    }
    const moved = events.append(answer);
    from = answer.next;
    change = answer.more ? 0 : answer.change;
    changed(answer, moved);
    await pause(answer.more ? 0 : PAUSE);
  }
}

/** One event whole, with those of its exchange; null where it is not kept. */
export async function whole(query) {
  const response = await fetch(`event?${query}`, { cache: "no-store" });
  return response.ok ? response.json() : null;
}

const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis));
