// What the editor says of a method: its signature and a sentence, from the definitions of the ops.

import { fetchOK } from '../page.js';

/** The methods that are no ops, which docs/hints.json lacks. */
const others = [
  ['b.input(name: string, dtype: DType, shape?: readonly Dim[]): Value', 'An input, which each run is given.'],
  ['b.param(name: string, dtype: DType, shape: readonly Dim[], initial?: Initial): Value', 'A parameter, which training changes.'],
  ['b.state(name: string, dtype: DType, shape: readonly Dim[]): Value', 'The value of a state at the start of a run.'],
  ['b.setState(name: string, value: Value): void', 'Sets a state at the end of a run.'],
  ['b.output(name: string, value: Value): void', 'A result, which a run can read.'],
  ['b.scope(name: string, build: () => T): T', 'Prefixes the names of parameters and states within.'],
  ['b.constant(dtype: DType, shape: readonly number[], data: TensorData): Value', 'A constant tensor.'],
  ['b.full(dtype: DType, shape: readonly Dim[], n: number): Value', 'A tensor of one number.'],
  ['b.randomKey(seed: number): Value', 'A key for random numbers.'],
  ['b.grad(xs: Value[], build: (b, xs) => Value): Value[]', 'The gradient of what build returns, which can be used like any value.'],
  ['x.matmul(y: Value): Value', 'The matrix product, over the last axis and the one before last; axes before those are batch axes.'],
  ['x.sum(axes?: readonly number[], keepDims?: boolean): Value', 'The sum along axes, or of all elements.'],
  ['x.crossEntropyMean(labels: Value): Value', 'The mean over rows of the cross-entropy of logits and integer labels.'],
  ['x.take(indices: Value, axis = 0): Value', 'The slices along an axis at indices.'],
  ['x.takeAlongAxis(indices: Value, axis = -1): Value', 'The elements along an axis at indices of the same rank.'],
  ['x.squeeze(axes?: readonly number[]): Value', 'Removes the axes of size 1, or the given ones.'],
  ['x.expandDims(axis: number): Value', 'A new axis of size 1.'],
  ['condition.where(x: Value | number, y: Value | number): Value', 'x where the condition is true, else y.'],
];

const nameOf = (signature) => /\.(\w+)/.exec(signature)[1];

let loading;

/** The list of all methods, [signature, sentence][], loaded with the first call. */
export const loadHints = () => loading ??= fetchOK(new URL('../docs/hints.json', import.meta.url)).then((response) => response.json())
  .then((ops) => [...others, ...ops].toSorted(([a], [b]) => nameOf(a).localeCompare(nameOf(b))));

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
