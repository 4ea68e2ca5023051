// What a program printed, in an element.

/** The lines that are kept. */
const most = 500;

/** Adds a line and shows it. */
export function print(element, text, level = 'log') {
  element.append(Object.assign(document.createElement('span'), { className: level, textContent: `${text}\n` }));
  while (element.children.length > most) element.firstChild.remove();
  element.scrollTop = element.scrollHeight;
}

/** "Line 4: " before an error with a place in the program, else nothing. */
export const lineOf = (place) => place ? `Line ${place.line}: ` : '';
