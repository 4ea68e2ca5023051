// What the editor says of a function or a method: its signature and a sentence, from the package's declarations and the
// definitions of the ops.

import { fetchOK } from '../page.js';

/** The parts of a signature: what a method is called on, nothing for a function, and the name. */
const partsOf = (signature) => /^(?:(\w+)\.)?(\w+)/.exec(signature).slice(1);

let loading;

/** The list of all functions and methods, [signature, sentence][], loaded with the first call. */
export const loadHints = () => loading ??= fetchOK(new URL('../docs/hints.json', import.meta.url)).then((response) => response.json());

/** The name that stands at a place of a program: up to there, and whole, whether a point is before it, and the name before that, if there is one. */
function nameAt(source, at) {
  const [, point, before] = /(\.?)([A-Za-z_]\w*|)$/.exec(source.slice(0, at)), of = /(\w+)$/.exec(source.slice(0, at - before.length - 1));
  return { before, name: before + /^\w*/.exec(source.slice(at))[0], isMethod: point !== '', of: of?.[1] };
}

/** The fewest letters of a function's name that are completed: a shorter word is a variable as often. */
const fewest = 3;

/**
 * What there is to say of a place: the function or method there, or those that begin as it does.
 * @returns {{method?: string[], names: string[], rest?: string}} rest completes the first name
 */
export function hintAt(list, source, at) {
  const { before, name, isMethod, of } = nameAt(source, at);
  const here = name ? list.map((hint) => ({ hint, parts: partsOf(hint[0]) })).filter(({ parts: [on] }) => (on !== undefined) === isMethod) : [];
  const first = (found) => found.find(({ parts: [on] }) => on === of) ?? found[0];
  const same = first(here.filter(({ parts: [, one] }) => one === name));
  if (same) return { method: same.hint, names: [] };
  if (!isMethod && before.length < fewest) return { names: [] };
  const begin = here.filter(({ parts: [, one] }) => one.startsWith(before)), own = begin.filter(({ parts: [on] }) => on === of);
  const names = [...new Set((own.length ? own : begin).map(({ parts: [, one] }) => one))].sort();
  return { names, ...before && name === before && names[0] && { rest: names[0].slice(before.length) } };
}
