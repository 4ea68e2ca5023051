// Initial values of a graph's parameters.

import { checkCount, classOf, RlxError, unknownName } from '../values/errors.js';
import type { HostTensor } from '../values/tensor.js';
import type { Graph, Port } from './graph.js';
import { checkInitial, fill, type Initial } from './initial.js';

const paramsOf = (graph: Graph) => graph.ports.filter(({ kind }) => kind === 'param');

/** The declared initial value of a parameter or state: what was given where the graph was built, or what its text has. */
const declaredOf = (graph: Graph, { name, initial }: Port): Initial | undefined => graph.initial.get(name) ?? initial;

/**
 * The initial values of a graph's parameters, and of states that declare one or begin as ones. Given values are by name, or by a
 * pattern as in {@link StepOptions.frozen}; names have precedence. Equal names and seeds, integers below 2³², give
 * equal values everywhere.
 */
export function initialParams(graph: Graph, given: Readonly<Record<string, Initial>> = {}, seed = 0): Record<string, HostTensor> {
  if (typeof Object(graph).step !== 'function') throw new RlxError('missing', `initialParams: the first argument is ${classOf(graph)}: it must be a graph`);
  if (typeof seed !== 'number') throw new RlxError('attr', `initialParams: the seed is ${classOf(seed)}: it must be a number`);
  checkCount('seed', seed, 0, 2 ** 32 - 1);
  const params = paramsOf(graph), own = byParameter(graph, params.map(({ name }) => name), given ?? {});
  return Object.fromEntries(startingPorts(graph).map((port) => [port.name, drawn(port, own.get(port.name) ?? startOf(graph, port), seed)]));
}

/** The parameters of a graph, and the states that declare an initial value or begin as ones. */
const startingPorts = (graph: Graph): Port[] => [
  ...paramsOf(graph), ...graph.ports.filter((port) => port.kind === 'state' && (port.ones || declaredOf(graph, port) !== undefined)),
];

/** The initial value of a port: the declared one, or the default. */
const startOf = (graph: Graph, port: Port): Initial => declaredOf(graph, port) ?? (port.ones ? 1 : port.shape.length > 1 ? 'glorot' : 0);

/** How a parameter or state begins: what {@link fill} draws it by. */
export type Start = readonly [name: string, dtype: string, shape: readonly number[], initial: Initial];

/** The initial values of the parameters and states of graphs, each by its first graph: {@link initialParams}, not yet drawn. @internal */
export function startsOf(entries: Readonly<Record<string, Graph>>, symbols: Readonly<Record<string, number>> = {}): Start[] {
  const found = new Map<string, Start>();
  for (const graph of Object.values(entries)) {
    const bound = Object.keys(symbols).length > 0 ? graph.bind(symbols) : graph;
    for (const port of startingPorts(bound)) if (!found.has(port.name)) found.set(port.name, [port.name, port.dtype, shapeOf(port), startOf(graph, port)]);
  }
  return [...found.values()];
}

/** Expands values given by names and patterns to parameter names. */
function byParameter(graph: Graph, params: readonly string[], given: Readonly<Record<string, Initial>>): Map<string, Initial> {
  const patterns = Object.keys(given), own = new Map<string, Initial>(), from = new Map<string, string>();
  graph.matching(patterns).forEach((matched, i) => {
    const pattern = patterns[i]!, initial = given[pattern]!;
    if (!matched.length) throw unknownName(`graph ${graph.name} has no parameter`, pattern, params);
    checkInitial(pattern, initial);
    for (const name of matched) {
      const other = from.get(name);
      if (other !== undefined && other !== name && pattern !== name && !Object.hasOwn(given, name)) {
        throw new RlxError('name', `parameter ${name} begins by the patterns ${other} and ${pattern}, which both match it: give it a value by its name`, { name });
      }
      if (other === name) continue;
      own.set(name, initial);
      from.set(name, pattern);
    }
  });
  return own;
}

/** The declared initial values of the parameters and states of graphs, with sizes for symbolic dimensions. */
export function declaredParams(entries: Readonly<Record<string, Graph | string>>, symbols: Readonly<Record<string, number>> = {}): Record<string, HostTensor> {
  const made: Record<string, HostTensor> = {};
  for (const graph of Object.values(entries)) {
    if (typeof graph === 'string' || !graph.ports.some((port) => declaredOf(graph, port) !== undefined)) continue;
    const bound = Object.keys(symbols).length > 0 ? graph.bind(symbols) : graph;
    for (const port of bound.ports) {
      const initial = declaredOf(graph, port);
      if (initial !== undefined && !made[port.name]) made[port.name] = drawn(port, initial, 0);
    }
  }
  return made;
}

function drawn(port: Port, initial: Initial, seed: number): HostTensor {
  const { name, dtype } = port, shape = shapeOf(port);
  return { dtype, shape, data: fill(name, dtype, shape, initial, seed) };
}

const shapeOf = ({ name, shape }: Port): number[] => shape.map((d) => {
  if (typeof d === 'number') return d;
  throw new RlxError('symbol', `parameter ${name} has the size ${d}, which no symbol gives`, { name });
});
