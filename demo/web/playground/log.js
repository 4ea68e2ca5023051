// What a program printed, in an element.

import { linked } from './links.js';

/** The lines that are kept. */
const most = 500;

/** Adds a line and shows it; `from` is the line of the program that printed it, if that is known. */
export function print(element, text, level = 'log', from = '') {
  const span = Object.assign(document.createElement('span'), { className: level, textContent: `${text}\n` });
  span.dataset.line = from;
  element.append(span);
  while (element.children.length > most) element.firstChild.remove();
  element.scrollTop = element.scrollHeight;
}

/** "Line 4: " before an error with a place in the program, else nothing. */
export const lineOf = (place) => place?.line ? `Line ${place.line}: ` : '';

/** Has what is printed take part in links. @param {import('./links.js').Links} links */
export function linkLog(element, links) {
  const link = ({ target: { dataset: { line } } }) => line ? { lines: [Number(line)] } : undefined;
  element.addEventListener('pointerover', (event) => links.over(link(event)));
  element.addEventListener('pointerleave', () => links.over());
  element.addEventListener('click', (event) => links.pin(link(event)));
  links.add((shown) => { for (const span of element.children) span.classList.toggle('lit', linked(shown, { lines: [Number(span.dataset.line)] })); });
}
