// State dictionaries of PyTorch: other names, and weights with their axes in another order.

import { checkOptions, need, RlxError } from '../values/errors.js';
import type { StoredTensor } from '../values/tensor.js';
import { convertible, type FileTensor } from './file.js';
import { checkRest } from './nearest.js';
import { permuted } from './permute.js';
import { needless, renamed } from './rename.js';

/** The graph that tensors belong to: a `Graph` of this package. */
export interface TorchGraph {
  readonly ports: readonly { readonly name: string; readonly kind: 'input' | 'param' | 'state'; readonly dtype: string; readonly shape: readonly (number | string)[] }[];
  text(): string;
}

/** Options of {@link fromTorch}. */
export interface FromTorchOptions {
  /**
   * Replaces the beginning of a name in PyTorch, whole parts of it: `{ 'encoder.layers': 'h', '0': 'linear0' }`. An empty new name leaves it
   * out, as of `{ module: '' }`. Of several, the first that fits is used.
   */
  rename?: Readonly<Record<string, string>>;
  /** Tensors that the graph does not need, by their names in PyTorch or the beginnings of those. */
  ignore?: readonly string[];
  /**
   * Parameters that keep their values, by name or scope: those of a new head, say, whatever head the file has. Load the others with
   * `allowMissing`.
   */
  keep?: readonly string[];
}

/** Options of {@link toTorch}. */
export interface ToTorchOptions {
  /** Replaces the beginning of a scope, whole parts of it: `{ h: 'encoder.layers', linear0: '0' }`. Of several, the first that fits is used. */
  rename?: Readonly<Record<string, string>>;
}

/** The layout of a weight: [in, out] here, [out, in] there; of the window [..., in, out] here, before it and in this or the other order there. */
type Layout = 'matrix' | 'conv' | 'convTranspose';

/**
 * The tensors of `model.state_dict()` for `load`, under the names of a graph and in its layout: slashes for dots, weights of linear and
 * recurrent layers transposed, the window of convolutions first. Every parameter must have a tensor, and every tensor a
 * parameter or state, unless the options say otherwise: else it throws an {@link RlxError} of kind `missing` or `name` that lists what
 * is left with the nearest names, `shape` for a tensor of another shape, and `name` for two with one new name. Parameters of a
 * `stack` that is a scan have no counterpart.
 */
export function fromTorch(tensors: Readonly<Record<string, StoredTensor>>, graph: TorchGraph, options?: FromTorchOptions): Record<string, FileTensor> {
  checkOptions('fromTorch', options, 'rename ignore keep');
  checkGiven('fromTorch', tensors, graph);
  const { rename = {}, ignore = [], keep = [] } = options ?? {}, rules = mapKeys(rename, (name) => name.replaceAll('.', '/'));
  const ports = portsOf(graph), layouts = layoutsOf(graph), out: Record<string, FileTensor> = {}, unused: string[] = [];
  for (const [given, tensor] of Object.entries(tensors)) {
    if (needless.test(given) || ignore.some((one) => given === one || given.startsWith(`${one}.`))) continue;
    const name = renamed(given.replaceAll('.', '/'), rules), port = ports.get(name);
    if (within(keep, name)) continue;
    if (!port) unused.push(given);
    else if (Object.hasOwn(out, name)) throw new RlxError('name', `fromTorch: two tensors are ${name}: the second is ${given}`, { name });
    else out[name] = fitted(given, tensor, port, layouts.get(name));
  }
  const missing = [...ports.values()].filter(({ name, kind }) => kind === 'param' && !Object.hasOwn(out, name) && !within(keep, name));
  checkRest('fromTorch', 'graph', missing.map(({ name }) => name), unused, ['keep', 'ignore']);
  return out;
}

/**
 * The tensors of a program or a trainer as PyTorch's `load_state_dict` takes them: the inverse of {@link fromTorch}. What the graph does not have, as the
 * states of an optimizer, is left out.
 */
export function toTorch(tensors: Readonly<Record<string, StoredTensor>>, graph: TorchGraph, options?: ToTorchOptions): Record<string, FileTensor> {
  checkOptions('toTorch', options, 'rename');
  checkGiven('toTorch', tensors, graph);
  const ports = portsOf(graph), layouts = layoutsOf(graph), out: Record<string, FileTensor> = {};
  for (const [given, tensor] of Object.entries(tensors)) {
    if (!ports.has(given)) continue;
    const name = renamed(given, options?.rename).replaceAll('/', '.');
    if (Object.hasOwn(out, name)) throw new RlxError('name', `toTorch: two tensors are ${name}: the second is ${given}`, { name });
    out[name] = inOrder(name, tensor, orderTo(layouts.get(given), tensor.shape.length));
  }
  return out;
}

const within = (scopes: readonly string[], name: string): boolean => scopes.some((one) => name === one || name.startsWith(`${one}/`));

function checkGiven(what: string, tensors: unknown, graph: TorchGraph): void {
  need(Object(tensors) === tensors, 'missing', `${what}: the first argument`, 'tensors by name', tensors);
  need(Array.isArray(graph?.ports), 'missing', `${what}: the second argument`, 'a graph', graph);
}

const mapKeys = <V>(of: Readonly<Record<string, V>>, to: (key: string) => string): Record<string, V> => Object.fromEntries(Object.entries(of).map(([key, value]) => [to(key), value]));

/** The parameters, and the states that are floats, by name: others count steps or are random keys. */
const portsOf = ({ ports }: TorchGraph) => new Map(ports.filter(({ kind, dtype }) => kind === 'param' || kind === 'state' && /^b?f\d/.test(dtype)).map((port) => [port.name, port]));

/** A tensor in the layout of a port. */
function fitted(name: string, tensor: StoredTensor, port: TorchGraph['ports'][number], layout: Layout | undefined): FileTensor {
  const { shape } = tensor, rank = shape.length, orders = [orderFrom(layout, rank), ...!layout && rank === 2 ? [[1, 0]] : []];
  const order = orders.find((one) => `${one.map((axis) => shape[axis])}` === `${port.shape}`);
  if (!order) throw new RlxError('shape', `fromTorch: ${name} is ${tensor.dtype}[${shape}], which does not fit parameter ${port.name}, ${port.dtype}[${port.shape}]`, { name, shape });
  return inOrder(name, tensor, order);
}

const inOrder = (name: string, tensor: StoredTensor, order: readonly number[]): FileTensor => {
  const { dtype, shape, data } = tensor, same = order.every((axis, i) => axis === i);
  return convertible(name, { dtype, shape: order.map((axis) => shape[axis]!), data: same ? data : permuted(data, shape, order) });
};

/** The axes of a tensor of PyTorch in the order that they have here. */
function orderFrom(layout: Layout | undefined, rank: number): number[] {
  const axes = Array.from({ length: rank }, (_, i) => i), [first, second, ...window] = axes;
  if (!layout || rank < 2) return axes;
  return layout === 'convTranspose' ? [...window, first!, second!] : [...window, second!, first!];
}

/** The inverse of {@link orderFrom}. */
function orderTo(layout: Layout | undefined, rank: number): number[] {
  const order = orderFrom(layout, rank);
  return order.map((_, axis) => order.indexOf(axis));
}

/** The ops whose operands are weights: from which operand on, and in which layout. */
const weightOps: Readonly<Record<string, readonly [from: number, layout: Layout]>> = {
  linear: [1, 'matrix'], matmul: [1, 'matrix'], lora_matmul: [1, 'matrix'], lstm: [3, 'matrix'], gru: [2, 'matrix'], rnn: [2, 'matrix'],
  conv2d: [1, 'conv'], conv_general: [1, 'conv'], conv_transpose: [1, 'convTranspose'],
};

/** A list of operands, of which those that are parameters have their names. */
type Operands = (string | undefined)[];

/** A graph in the text, perhaps one within an op: its parameters by the values that are they, its inputs, and the operands of its last op. */
interface Scope { readonly params: Map<string, string>; readonly inputs: Operands; operands: Operands }

/**
 * The layouts of weights by their parameters, by the ops that use them, those of checkpoints, loops and branches included. A table of
 * an embedding is one, whatever else uses it.
 */
function layoutsOf(graph: TorchGraph): Map<string, Layout> {
  const layouts = new Map<string, Layout>(), tables = new Set<string>(), types = new Map<string, string>(), scopes: Scope[] = [];
  for (const line of graph.text().split('\n')) {
    const depth = /^ */.exec(line)![0].length / 4 | 0;
    if (/^ *graph "/.test(line)) {
      scopes.length = depth;
      scopes.push({ params: new Map(), inputs: [...scopes[depth - 1]?.operands ?? []], operands: [] });
      continue;
    }
    const scope = scopes[depth], [, id, kind, text, type] = /^ *(%\d+) = (input|param) ("(?:[^"\\]|\\.)*") : (\S+)/.exec(line) ?? [];
    if (!scope) continue;
    const { params, inputs } = scope;
    if (id && text && type) {
      const name = kind === 'param' ? JSON.parse(text) as string : inputs.shift();
      if (kind === 'param') types.set(name!, type);
      if (name !== undefined && types.get(name) === type) params.set(id, name); // a slice of a stacked parameter is none
      continue;
    }
    const [, result, op = '', list] = /^ *(%\d+)[^=]* = (\w+)\((.*?)\)/.exec(line) ?? [];
    if (list === undefined) continue;
    scope.operands = list.split(', ').map((operand) => params.get(operand));
    scope.operands.forEach((param, i) => {
      const [from, layout] = weightOps[op] ?? [];
      if (param === undefined) return;
      if (op === 'convert') params.set(result!, param);
      if (op === 'embedding') tables.add(param);
      if (layout && i >= from!) layouts.set(param, layout);
    });
    if (op === 'cond') scope.operands.shift(); // the predicate, which is no operand of the branches
  }
  for (const table of tables) layouts.delete(table);
  return layouts;
}
