// Elements from data. Text becomes text nodes alone: nothing that a query gives can become markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element: `on...` properties are listeners, the others attributes; `true` is an attribute without a value. */
export const h = (tag, properties, ...children) =>
  filled(document.createElement(tag), properties, children);

/** An element of SVG. */
export const s = (tag, properties, ...children) =>
  filled(document.createElementNS(SVG, tag), properties, children);

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...kept(children));
  return element;
}

/** Puts `children` in place of what `element` holds. */
export function fill(element, ...children) {
  element.replaceChildren(...kept(children));
  return element;
}

const kept = (children) => children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false);

/** Sets properties of style, which attributes must not. */
export function styled(element, properties) {
  for (const [name, value] of Object.entries(properties)) element.style.setProperty(name, value);
  return element;
}

/** Changes the text only where it is another one: a page that is looked at does not flicker. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
