// Makes elements. Whatever an event says becomes a text node, never markup.

// Controls, and what changes the direction of a line or is not seen: a name must not look like another.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\u3164\uffa0]/gu;
const ESCAPES = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** A text in which every character is seen, as the command line writes it: `\u{202e}`. */
export function visible(text) {
  return String(text).replace(HIDDEN, (character) => ESCAPES[character] ?? `\\u{${character.codePointAt(0).toString(16)}}`);
}

/** A text of several lines, which stay. */
export const lines = (text) => String(text).split("\n").map(visible).join("\n");

const SHOWN = new Set(["title", "aria-label"]);

/** Makes an element. `properties`: `class`, `on` (handlers), and attributes; children are elements or texts. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    else element.setAttribute(name, value === true ? "" : SHOWN.has(name) ? lines(value) : value);
  }
  const there = children.flat().filter((child) => child !== null && child !== undefined && child !== false);
  const shown = tag === "pre" ? lines : visible;
  element.append(...there.map((child) => (child instanceof Node ? child : shown(child))));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** Makes an element of SVG. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const $ = (id) => document.getElementById(id);

/** Replaces the text of an element, where it differs; `says` also what it says where it is cut off. */
export function setText(element, text, says = false) {
  const shown = visible(text);
  if (element.textContent !== shown) element.textContent = shown;
  if (says) element.title = shown;
}

const probe = document.createElement("i");
probe.hidden = true;

/** The value of a colour of style.css under the present theme. */
export function color(name) {
  if (!probe.isConnected) document.body.append(probe);
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}
