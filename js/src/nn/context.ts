// Modes, scopes and shared parameters of a graph.

import type { GraphBuilder, Value } from '../graph/builder.js';
import { classOf, RlxError } from '../values/errors.js';
import { builderOf, checkBuild, contextOf, drawKey, during, inside, Layer, tieOf } from './layer.js';

/** Sets training mode: from here on `dropout` drops, and `batchNorm` uses the statistics of the batch and updates the running ones. */
export function train(b: GraphBuilder): void { inside(train, b, () => { contextOf(b).training = true; }); }

/** Sets inference mode: from here on nothing is dropped, and batch norms use the running statistics, which are then frozen parameters. */
export function infer(b: GraphBuilder): void { inside(infer, b, () => { contextOf(b).training = false; }); }

/** Whether {@link train} is in effect. */
export function isTraining(b: GraphBuilder): boolean { return inside(isTraining, b, () => contextOf(b).training === true); }

/** Builds a part of a model that is not trained: its layers compute as in inference, and its parameters are frozen. */
export function frozen<T>(b: GraphBuilder, build: () => T): T {
  checkBuild(frozen, build);
  return inside(frozen, b, () => during(b, { training: false, frozen: true }, build));
}

/**
 * Builds with parameters that the same function may have declared before, outside of `shared`:
 * they are the same parameters, and their gradients add up. Names of layers count from the start.
 * Each call of a `batchNorm` moves its running statistics, one after the other; other states, those of a `cache` and of metrics,
 * cannot be shared.
 */
export function shared<T>(b: GraphBuilder, build: () => T): T {
  checkBuild(shared, build);
  return inside(shared, b, () => during(b, { shared: true, counts: new Map() }, build));
}

/** x + f(x), of the type of x. */
export function residual(x: Value, f: (x: Value) => Value): Value {
  checkBuild(residual, f);
  return inside(residual, builderOf(residual, x), () => {
    const y = x.builder.outside(() => f(x));
    builderOf(residual, y);
    const l = new Layer(x, 'residual');
    if (`${y.shape}` !== `${x.shape}`) l.fail('shape', `f(x) is ${y.dtype}[${y.shape}]`);
    if (y.dtype !== x.dtype) l.fail('dtype', `f(x) is ${y.dtype}[${y.shape}]`);
    return x.add(y);
  });
}

/** A parameter that was declared before, by its full name, such as `embedding0/weight`. Gradients of its uses add up. */
export function tie(b: GraphBuilder, name: string): Value {
  return inside(tie, b, () => tieOf(b, name));
}

/**
 * A random key, u32[2], that no other call in this graph gets and that changes with every step. It depends on the state
 * `rng`, the open scope, the name of the stream and the number of earlier calls with both. The state begins by the seed
 * of the training and is saved with checkpoints. A graph that draws nothing has no such state.
 */
export function key(b: GraphBuilder, name: string): Value {
  return inside(key, b, () => {
    if (typeof name !== 'string') throw new RlxError('attr', `nn.key: the name of the stream is ${classOf(name)}: it must be a text`, { op: 'nn.key' });
    return drawKey(b, name);
  });
}

/**
 * x with each element set to 0 with probability rate, in [0, 1), and the others divided by 1 − rate, in training; x
 * itself in inference.
 */
export function dropout(x: Value, rate: number): Value {
  return inside(dropout, builderOf(dropout, x), () => new Layer(x, 'dropout').drop(x, rate));
}
