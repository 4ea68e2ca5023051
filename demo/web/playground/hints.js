// What the editor says of a method: its signature and a sentence, from the definitions of the ops.

import { fetchOK } from '../page.js';

/** The methods of the builder that are no ops: what docs/hints.json lacks. */
const builder = [
  ['b.input(name: string, dtype: DType, shape?: readonly Dim[]): Value', 'An input, which each run is given.'],
  ['b.param(name: string, dtype: DType, shape: readonly Dim[], initial?: Initial): Value', 'A parameter, which training changes.'],
  ['b.state(name: string, dtype: DType, shape: readonly Dim[]): Value', 'The value of a state at the start of a run.'],
  ['b.setState(name: string, value: Value): void', 'Sets a state at the end of a run.'],
  ['b.output(name: string, value: Value): void', 'A result, which a run can read.'],
  ['b.scope(name: string, build: () => T): T', 'Prefixes the names of parameters and states within.'],
];

const nameOf = (signature) => /\.(\w+)/.exec(signature)[1];

let loading;

/** The list of all methods, [signature, sentence][], loaded with the first call. */
export const loadHints = () => loading ??= fetchOK(new URL('../docs/hints.json', import.meta.url)).then((response) => response.json())
  .then((ops) => [...builder, ...ops].toSorted(([a], [b]) => nameOf(a).localeCompare(nameOf(b))));

/** The method that stands at a place of a program: its name up to there, and whole; undefined if there is none. */
export function methodAt(source, at) {
  const [, before] = /\.(\w*)$/.exec(source.slice(0, at)) ?? [];
  return before === undefined ? undefined : { before, name: before + /^\w*/.exec(source.slice(at))[0] };
}

/**
 * What there is to say of a place: the method there, or those that begin as it does.
 * @returns {{method?: string[], names: string[], rest?: string}} rest completes the first name
 */
export function hintAt(list, source, at) {
  const found = methodAt(source, at);
  if (!found?.name) return { names: [] };
  const method = list.find(([signature]) => nameOf(signature) === found.name);
  if (method) return { method, names: [] };
  const names = [...new Set(list.map(([signature]) => nameOf(signature)))].filter((name) => name.startsWith(found.before));
  return { names, ...found.before && found.name === found.before && names[0] && { rest: names[0].slice(found.before.length) } };
}
