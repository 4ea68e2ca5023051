// Tensors of a file for a program whose names, layouts or element types are others.

import { checkOptions, need, RlxError } from '../values/errors.js';
import type { StoredTensor } from '../values/tensor.js';
import { convertible, type FileTensor } from './file.js';
import { checkRest, listed } from './nearest.js';
import { permuted } from './permute.js';
import { needless, renamed } from './rename.js';

/** What takes tensors: a `Program`, or a `Graph` of this package. */
export type MatchTarget = { readonly plan: { readonly slots: readonly MatchSlot[] } } | { readonly ports: readonly MatchPort[] };

/** A slot of a plan. */
export interface MatchSlot { readonly name: string; readonly role: string; readonly dtype: string }

/** A port of a graph. */
export interface MatchPort { readonly name: string; readonly kind: string; readonly dtype: string }

/** Options of {@link matchTensors}. Patterns are those of `frozen`: `head` is all names in that scope, `*\/bias` all biases. */
export interface MatchOptions {
  /** The name of the parameter that a tensor is for, '' for one to ignore: a function, or new beginnings by the old ones, whole parts of a path. */
  rename?: ((name: string) => string) | Readonly<Record<string, string>>;
  /** Patterns of parameters that keep their values if no tensor is given. Load with `allowMissing`. */
  missing?: readonly string[];
  /**
   * Patterns, after `rename`, of tensors that are ignored, also where the target has the name: a head that both `missing` and `extra` cover keeps its
   * values, as when the file has one for other classes. PyTorch's `num_batches_tracked` is always ignored.
   */
  extra?: readonly string[];
  /** Patterns, after `rename`, of weights with the axis of outputs first, as PyTorch has them: [out, in, ...] becomes [..., in, out]. */
  outIn?: readonly string[];
  /** As `outIn` for weights with the window last, as PyTorch has those of transposed convolutions: [in, out, ...] becomes [..., in, out]. It has precedence. */
  inOut?: readonly string[];
  /** Rounds floats of a wider element type to that of their parameter. */
  cast?: boolean;
}

/**
 * The tensors of a file for `load`, by rules: other names, weights with their axes in another order, other float types, a part of the parameters. Every
 * parameter must have a tensor, and every tensor a parameter or state, unless a pattern covers it: else it throws an {@link RlxError} of
 * kind `missing` or `name` that lists what is left, each with the nearest name; also of kind `name` for two tensors with one new name,
 * and for a pattern of `missing`, `outIn` or `inOut` that matches nothing.
 *
 * ```ts
 * const tensors = matchTensors(decodeSafetensors(file).tensors, program, { rename: { layers: 'h' }, missing: ['head'], cast: true });
 * await program.load(tensors, { allowMissing: true });
 * ```
 */
export function matchTensors(tensors: Readonly<Record<string, StoredTensor>>, target: MatchTarget, options?: MatchOptions): Record<string, FileTensor> {
  checkOptions('matchTensors', options, 'rename missing extra outIn inOut cast');
  need(Object(tensors) === tensors, 'missing', 'matchTensors: the first argument', 'tensors by name', tensors);
  const { rename = {}, missing = [], extra = [], outIn = [], inOut = [], cast = false } = options ?? {};
  const slots = slotsOf(target), given = byNewName(tensors, typeof rename === 'function' ? rename : (name) => renamed(name, rename)), out: Record<string, FileTensor> = {};
  checkPatterns('missing', missing, slots.keys());
  checkPatterns('outIn', outIn, given.keys());
  checkPatterns('inOut', inOut, given.keys());
  const unused: string[] = [];
  for (const [name, tensor] of given) {
    if (covered(extra, name)) continue;
    const slot = slots.get(name);
    if (slot) out[name] = fitted(name, tensor, slot.dtype, covered(inOut, name) ? [0, 1] : covered(outIn, name) ? [1, 0] : [], cast);
    else if (!needless.test(name)) unused.push(name);
  }
  const lacking = [...slots.values()].filter(({ name, kind }) => kind === 'param' && !Object.hasOwn(out, name) && !covered(missing, name)).map(({ name }) => name);
  checkRest('matchTensors', 'program', lacking, unused, ['missing', 'extra']);
  return out;
}

/** The parameters and states of a target, by name. */
function slotsOf(target: MatchTarget): Map<string, MatchPort> {
  const { plan, ports } = Object(target) as { plan?: { slots: readonly MatchSlot[] }; ports?: readonly MatchPort[] };
  const all = plan?.slots.map(({ name, role, dtype }): MatchPort => ({ name, kind: role, dtype })) ?? ports;
  need(Array.isArray(all), 'missing', 'matchTensors: the second argument', 'a program or a graph', target);
  return new Map(all.filter(({ kind }) => kind === 'param' || kind === 'state').map((port) => [port.name, port]));
}

/** Tensors by their new names. */
function byNewName(tensors: Readonly<Record<string, StoredTensor>>, rename: (name: string) => string): Map<string, StoredTensor> {
  const out = new Map<string, StoredTensor>(), from = new Map<string, string>();
  for (const [name, tensor] of Object.entries(tensors)) {
    const to = rename(name);
    need(typeof to === 'string', 'attr', `matchTensors: the new name of ${name}`, 'a text', to);
    if (!to) continue;
    if (out.has(to)) throw new RlxError('name', `matchTensors: tensors ${from.get(to)} and ${name} are both renamed to ${to}`, { name });
    out.set(to, tensor);
    from.set(to, name);
  }
  return out;
}

/** Whether a type is one of floats that are cast. */
const isFloat = (dtype: string): boolean => /^b?f(16|32|64)$/.test(dtype);

/** A tensor as its parameter takes it, with the axes of inputs and outputs last, if any are given. */
function fitted(name: string, given: StoredTensor, dtype: string, last: readonly number[], cast: boolean): FileTensor {
  const { shape, data } = given, order = [...[...shape.keys()].slice(2), ...last];
  const moved = last.length && shape.length > 1 ? { dtype: given.dtype, shape: order.map((axis) => shape[axis]!), data: permuted(data, shape, order) } : { dtype: given.dtype, shape, data };
  const tensor = convertible(name, moved);
  return cast && tensor.dtype !== dtype && isFloat(tensor.dtype) && isFloat(dtype) ? tensor.as(dtype, { narrow: true }) : tensor;
}

/** Whether one of the patterns is a name, or a scope of it, as in `frozen`: `*` is any text between slashes, `?` any character of it, `[0-3]` one of some. */
const covered = (patterns: readonly string[], name: string): boolean => patterns.some((pattern) => expressionOf(pattern).test(name));

function expressionOf(pattern: string): RegExp {
  const body = pattern.replace(/\[\^?[^\]\\/]+\]|[.*+?^${}()|[\]\\]/g, (part) => part.length > 1 ? part : { '*': '[^/]*', '?': '[^/]' }[part] ?? `\\${part}`);
  let made: RegExp | undefined;
  try {
    made = new RegExp(`^${body}(/|$)`);
  } catch { /* a range from high to low */ }
  need(made, 'attr', 'matchTensors: a pattern', 'one with ranges from low to high', pattern);
  return made;
}

/** Refuses patterns that match nothing, which are probably misspelt. */
function checkPatterns(option: string, patterns: readonly string[], names: Iterable<string>): void {
  need(Array.isArray(patterns) && patterns.every((one) => typeof one === 'string'), 'attr', `matchTensors: ${option}`, 'a list of patterns', patterns);
  const all = [...names], wrong = patterns.find((pattern) => !all.some((name) => covered([pattern], name)));
  if (wrong !== undefined) throw new RlxError('name', `matchTensors: ${option} has ${listed([wrong], all)}, which matches nothing`, { name: wrong });
}
