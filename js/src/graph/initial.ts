// What parameters begin with.

import { generator } from '../session/batches.js';
import { arrayType, sizeOf, type TensorData } from '../values/dtype.js';
import { classOf, RlxError, unknownName } from '../values/errors.js';
import type { Graph, Port } from './graph.js';
import type { HostTensor } from '../session/session.js';
import type { Module } from './train.js';

/**
 * What a parameter begins with: one number everywhere, its elements, or random numbers, drawn
 * uniformly. The last axis is what a layer puts out, the one before what it takes in, all others
 * are its receptive field: with `glorot` their bound is √(6 / (fan in + fan out)), with `he` √(6 / fan in).
 */
export type Initial = number | TensorData | 'glorot' | 'he';

/** Refuses what is no {@link Initial}. */
export function checkInitial(name: string, initial: Initial): void {
  if (typeof initial === 'number' || ArrayBuffer.isView(initial) || initial === 'glorot' || initial === 'he') return;
  const given = typeof initial === 'string' ? initial : classOf(initial);
  throw new RlxError('attr', `parameter ${name} begins with a number, its elements in a typed array, 'glorot' or 'he', not with ${given}`, { name });
}

const paramsOf = (graph: Graph) => graph.ports.filter(({ kind }) => kind === 'param').sort((a, b) => a.name < b.name ? -1 : 1);

/** The values that a graph's parameters begin with, drawn in the order of their names, and those of states that begin as ones. */
export function initialParams(graph: Graph, given: Readonly<Record<string, Initial>> = {}, seed = 0): Record<string, HostTensor> {
  if (typeof Object(graph).step !== 'function') throw new RlxError('missing', `initialParams: the first argument is a graph, given as ${classOf(graph)}`);
  if (typeof seed !== 'number') throw new RlxError('attr', `initialParams: the seed is a number, given as ${classOf(seed)}`);
  const params = paramsOf(graph);
  for (const name in given) {
    if (!params.some((port) => port.name === name)) throw unknownName(`graph ${graph.name} has no parameter`, name, params.map((port) => port.name));
    checkInitial(name, given[name]!);
  }
  const random = generator(seed);
  return Object.fromEntries([...params, ...graph.ports.filter(({ kind, ones }) => kind === 'state' && ones)].map((port) => {
    const initial = given?.[port.name] ?? graph.initial.get(port.name) ?? (port.ones ? 1 : port.shape.length > 1 ? 'glorot' : 0);
    return [port.name, drawn(port, initial, random)];
  }));
}

/** The values of the parameters of a module's graphs whose declarations say what they begin with. */
export function declaredParams({ entries, symbols = {} }: Module): Record<string, HostTensor> {
  const random = generator(0), made: Record<string, HostTensor> = {};
  for (const graph of Object.values(entries)) {
    if (typeof graph === 'string' || graph.initial.size === 0) continue;
    const bound = Object.keys(symbols).length > 0 ? graph.bind(symbols) : graph;
    for (const port of paramsOf(bound)) {
      const initial = graph.initial.get(port.name);
      if (initial !== undefined && !made[port.name]) made[port.name] = drawn(port, initial, random);
    }
  }
  return made;
}

function drawn({ name, dtype, shape: dims }: Port, initial: Initial, random: () => number): HostTensor {
  const shape = dims.map((d) => {
    if (typeof d === 'number') return d;
    throw new RlxError('symbol', `parameter ${name} has the size ${d}, which no symbol gives`, { name });
  });
  return { dtype, shape, data: fill(name, dtype, shape, initial, random) };
}

function fill(name: string, dtype: string, shape: readonly number[], initial: Initial, random: () => number): TensorData {
  if (typeof initial === 'object') return initial;
  const size = sizeOf(shape), type = arrayType(dtype), data = new type(new ArrayBuffer(size * type.BYTES_PER_ELEMENT), 0, size);
  if (typeof initial === 'number' && (initial === 0 || dtype !== 'f16' && dtype !== 'bf16')) return data.fill(initial);
  if (dtype !== 'f32') throw new RlxError('dtype', `parameter ${name} is ${dtype}: give its elements`, { name });
  const out = shape.at(-1) ?? 1, into = size / Math.max(out, 1), field = into / Math.max(shape.at(-2) ?? 1, 1);
  const bound = Math.sqrt(6 / (initial === 'he' ? into : into + out * field));
  for (let i = 0; i < size; i++) data[i] = (2 * random() - 1) * bound;
  return data;
}
