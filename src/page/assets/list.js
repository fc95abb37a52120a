// A list of any length, of which the rows in sight alone are elements.

import { h } from "./dom.js";

const BEYOND = 6;

export class List {
  /** `host` scrolls; `height` of a row in rem. `row` makes `{ element, show(item, at) }`; `open(item)` is a click or Enter. */
  constructor(host, { head, row, open, empty, height }) {
    Object.assign(this, { host, row, open, rem: height, items: [], selected: -1, rows: new Map(), free: [] });
    this.head = h("div", { class: "row head", role: "row" }, head);
    this.space = h("div", { class: "space", role: "rowgroup" });
    this.empty = h("div", { class: "empty", hidden: true }, empty);
    this.host.replaceChildren(this.head, this.space, this.empty);
    this.watch = new AbortController();
    const on = (name, handler) => this.host.addEventListener(name, handler, { signal: this.watch.signal, passive: true });
    on("scroll", () => this.draw());
    on("click", (event) => {
      const row = event.target.closest("[data-at]");
      if (row && !event.target.closest("a, button")) this.choose(Number(row.dataset.at), true);
    });
    this.resize = new ResizeObserver(() => this.draw());
    this.resize.observe(this.host);
  }

  close() {
    this.watch.abort();
    this.resize.disconnect();
  }

  get height() {
    return (this.measured ??= Math.round(this.rem * parseFloat(getComputedStyle(document.documentElement).fontSize)));
  }

  /** Shows other items. `above`: so many came in front of those that were there, and what is in sight stays there. */
  show(items, above = 0) {
    this.items = items;
    this.measured = undefined;
    this.space.style.height = `${items.length * this.height}px`;
    this.host.setAttribute("aria-rowcount", items.length + 1);
    this.empty.hidden = items.length > 0;
    if (above > 0) {
      if (this.selected >= 0) this.selected += above;
      if (this.host.scrollTop > this.height) this.host.scrollTop += above * this.height;
    }
    this.draw(true);
  }

  draw(anew = false) {
    const first = Math.max(0, Math.floor(this.host.scrollTop / this.height) - BEYOND);
    const last = Math.min(this.items.length, Math.ceil((this.host.scrollTop + this.host.clientHeight) / this.height) + BEYOND);
    for (const [at, row] of this.rows) {
      if (at >= first && at < last) continue;
      this.rows.delete(at);
      this.free.push(row);
    }
    for (let at = first; at < last; at++) {
      const row = this.rows.get(at);
      if (!row || anew) this.place(row ?? this.take(), at);
    }
    for (const row of this.free) row.element.hidden = true;
  }

  take() {
    const row = this.free.pop() ?? this.row();
    if (!row.element.isConnected) this.space.append(row.element);
    row.element.hidden = false;
    return row;
  }

  place(row, at) {
    this.rows.set(at, row);
    row.element.style.height = `${this.height}px`;
    row.element.style.transform = `translateY(${at * this.height}px)`;
    row.element.dataset.at = at;
    row.element.id = `row-${at}`;
    row.element.setAttribute("aria-rowindex", at + 2);
    row.element.setAttribute("aria-selected", at === this.selected);
    row.show(this.items[at], at);
  }

  /** Selects a row and brings it into sight. */
  choose(at, opens = false) {
    if (this.items.length === 0) return;
    this.selected = Math.max(0, Math.min(at, this.items.length - 1));
    const [top, room] = [this.selected * this.height, this.host.clientHeight - this.height - this.head.offsetHeight];
    if (top < this.host.scrollTop) this.host.scrollTop = top;
    else if (top > this.host.scrollTop + room) this.host.scrollTop = top - room;
    this.draw(true);
    this.host.setAttribute("aria-activedescendant", `row-${this.selected}`);
    if (opens) this.open(this.items[this.selected]);
  }
}
