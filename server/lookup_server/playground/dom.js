// Making elements.

/**
 * @param {string} name of the element
 * @param {object} [properties] to assign; `data` goes to its data attributes
 * @param {...(Node|string)} children
 */
export function make(name, { data, ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  Object.assign(element.dataset, data);
  element.append(...children);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** An element of a drawing, with its attributes. */
export function draw(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export const byId = (id) => document.getElementById(id);
