// Makes elements. Whatever an event says becomes a text node, never markup.

/** Makes an element. `properties`: `class`, `on` (handlers), and attributes; children are elements or texts. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
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

/** Replaces the text of an element, where it differs. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const probe = document.createElement("i");
probe.hidden = true;

/** The value of a colour of style.css under the present theme. */
export function color(name) {
  if (!probe.isConnected) document.body.append(probe);
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}
