// Averages of parameters, which a training step keeps as states of its optimizer.

import type { DType } from '../values/dtype.js';
import { RlxError } from '../values/errors.js';
import type { Value } from './builder.js';
import { Graph, graph } from './graph.js';

/** The name of the state with the average of a parameter, for an optimizer of a name, which may be empty. */
export const averageOf = (param: string, optimizer = ''): string => `optim/${optimizer && `${optimizer}:`}average/${param}`;

/**
 * An entry that reads averages, which a step keeps, in place of the parameters that they are of. Throws an {@link RlxError} of kind
 * `graph` if the entry reads no parameter with an average.
 */
export function onAverages(entry: string, of: Graph, step: Graph, optimizer?: string): Graph {
  const kept = new Map(step.ports.filter(({ kind }) => kind === 'state').map((port) => [port.name, port]));
  const averaged = of.ports.filter(({ kind, name }) => kind === 'param' && kept.has(averageOf(name, optimizer)));
  if (!averaged.length) throw new RlxError('graph', `evalAverages: entry ${entry} reads no parameter with an average: the optimizer must have \`average\`, and the parameters be trained`, { name: entry });
  return graph(of.name, (b) => {
    const given: Record<string, Value> = {};
    for (const { kind, name, dtype, shape } of of.ports) if (kind === 'input') given[name] = b.input(name, dtype as DType, shape);
    for (const { name, dtype, shape } of averaged) {
      const { name: state, dtype: own } = kept.get(averageOf(name, optimizer))!, average = b.param(state, own as DType, shape);
      given[name] = own === dtype ? average : average.convert(dtype as DType);
    }
    for (const [name, value] of Object.entries(b.call(of, given))) b.output(name, value);
  });
}
