// Elements by calls, never by markup: what users write is always text.

const SVG = "http://www.w3.org/2000/svg";

export const by = (id) => document.getElementById(id);

export function make(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function draw(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.filter((one) => one !== null && one !== undefined));
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...children);
}

// Only where it is another: what is announced is not announced again.
export function say(name, text) {
  if (by(name).textContent !== text) by(name).textContent = text;
}

export const strong = (text) => make("strong", {}, text);

export const spoken = (text) => make("span", { class: "spoken" }, text);

export function counted(number, one, several = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : several}`;
}

export const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;
