// Recurrent layers.

import type { Value } from '../graph/builder.js';
import type { Called } from '../graph/caller-stack.js';
import type { Initial } from '../graph/initial.js';
import { part } from '../graph/part.js';
import { contextOf, fanIn, type Layer, layer, type NameOption } from './layer.js';
import { carried } from './position.js';

/** Options of {@link lstm}, {@link gru} and {@link rnn}. */
export interface RecurrentOptions extends NameOption {
  /** The number of layers, each on the results of the one before. 1 if not given. */
  layers?: number;
  /** Runs each layer in both directions and joins their results. */
  bidirectional?: boolean;
  /** x is [time, batch, features]; if not set it is [batch, time, features]. */
  timeFirst?: boolean;
  /** Replaces the tanh of {@link rnn}. */
  relu?: boolean;
  /** Makes the reset gate of {@link gru} multiply the state before the product with the weights (Keras's reset_after=False), not the product. */
  resetBefore?: boolean;
  /** Omits the biases. */
  noBias?: boolean;
  /** The rate at which the results of all layers but the last are dropped in training. */
  dropout?: number;
  /** The initial states, [layers·directions, batch, hidden]: zeros if not given, or with a `cache` the last of the run before. */
  hidden?: Value;
  cell?: Value;
  /** The initial value of all weights: uniform in ±1/√hidden if not given, as in PyTorch. */
  init?: Initial;
}

/**
 * Long short-term memories (Hochreiter and Schmidhuber) over x, [batch, time, features]: the hidden states of the last
 * layer, [batch, time, directions·hidden], and the final hidden and cell states of all layers, [layers·directions, batch,
 * hidden]. Parameters of layer k: `weight_ih_lk` [in, 4·hidden], `weight_hh_lk` [hidden, 4·hidden], `bias_ih_lk` and
 * `bias_hh_lk` [4·hidden], with gates in the order i, f, g, o, and for the backward direction those with the suffix
 * `_reverse`. PyTorch's weights are the transposes.
 */
export function lstm(x: Value, hidden: number, options?: RecurrentOptions): [y: Value, h: Value, c: Value] {
  return recurrent(lstm, 'lstm', x, hidden, 4, 2, options) as [Value, Value, Value];
}

/** {@link lstm} for gated recurrent units (Cho et al.), with 3·hidden columns, gates in the order r, z, n, and no cell state. */
export function gru(x: Value, hidden: number, options?: RecurrentOptions): [y: Value, h: Value] {
  return recurrent(gru, 'gru', x, hidden, 3, 1, options) as [Value, Value];
}

/** {@link gru} for a plain (Elman) recurrent network, with hidden columns and tanh. */
export function rnn(x: Value, hidden: number, options?: RecurrentOptions): [y: Value, h: Value] {
  return recurrent(rnn, 'rnn', x, hidden, 1, 1, options) as [Value, Value];
}

/** The results of a stack of layers of one kind, which keep a number of states. */
function recurrent(called: Called, kind: 'lstm' | 'gru' | 'rnn', x: Value, hidden: number, gates: number, states: number, options?: RecurrentOptions): Value[] {
  return layer(called, kind, x, options, 'layers bidirectional timeFirst relu resetBefore noBias dropout hidden cell init', (l) => {
    const o = options ?? {}, { layers = 1, dropout: rate = 0 } = o, dirs = o.bidirectional ? 2 : 1;
    checkRecurrent(l, hidden, layers, o);
    let y = o.timeFirst ? x : x.swapAxes({ axis1: 0, axis2: 1 }), features = l.size(-1);
    const begin = ['hidden', 'cell'].slice(0, states).map((name): ReturnType<typeof carried> => {
      const given = o[name as 'hidden' | 'cell'];
      return given ? [given, () => {}] : carried(l, name, y.shape[0]!, [layers * dirs, y.shape[1]!, hidden]);
    });
    const finals = begin.map((): Value[] => []), whole = (rate === 0 || layers === 1) && !o.resetBefore;
    let weights: Value[] = [];
    for (let k = 0; k < layers; k++) {
      for (let dir = 0; dir < dirs; dir++) weights.push(...weightsOf(l, o, `_l${k}${dir ? '_reverse' : ''}`, features, hidden, gates));
      features = hidden * dirs;
      if (whole && k + 1 < layers) continue;
      const first = whole ? 0 : k * dirs, n = whole ? layers * dirs : dirs;
      const [out, ...last] = run(kind, y, begin.map(([state]) => part(state, 0, first, n)), weights, o);
      last.forEach((state, s) => finals[s]!.push(state));
      y = k + 1 < layers ? l.drop(out!, rate) : out!;
      weights = [];
    }
    const last = finals.map((list) => l.b.concatenate(list, 0));
    last.forEach((state, s) => begin[s]![1](state));
    return [o.timeFirst ? y : y.swapAxes({ axis1: 0, axis2: 1 }), ...last];
  });
}

function checkRecurrent(l: Layer, hidden: number, layers: number, o: RecurrentOptions): void {
  if (l.x.shape.length !== 3) l.fail('shape', 'x has three axes: batch, time and features');
  l.requireCount(hidden, 'hidden');
  l.requireCount(layers, 'layers');
  l.requireRate(o.dropout ?? 0);
  l.require(l.kind === 'rnn' || !o.relu, 'relu, which is for rnn');
  l.require(l.kind === 'gru' || !o.resetBefore, 'resetBefore, which is for gru');
  l.require(l.kind === 'lstm' || !o.cell, 'a state of cells, which is for lstm');
  l.require(!contextOf(l.b).cache || !o.bidirectional, 'a cache, which excludes bidirectional');
}

function weightsOf(l: Layer, { init, noBias }: RecurrentOptions, suffix: string, features: number, hidden: number, gates: number): Value[] {
  const usual = fanIn(hidden), columns = gates * hidden;
  const weights = [l.param(`weight_ih${suffix}`, init, usual, [features, columns]), l.param(`weight_hh${suffix}`, init, usual, [hidden, columns])];
  if (!noBias) return [...weights, l.param(`bias_ih${suffix}`, init, usual, [columns]), l.param(`bias_hh${suffix}`, init, usual, [columns])];
  const zeros = l.b.full(l.x.dtype as 'f32', [columns], 0);
  return [...weights, zeros, zeros];
}

function run(kind: 'lstm' | 'gru' | 'rnn', x: Value, [h, c]: Value[], weights: Value[], { bidirectional, relu, resetBefore: before }: RecurrentOptions): Value[] {
  if (before) return resetBefore(x, h!, weights);
  const attributes = { ...bidirectional && { bidirectional }, ...relu && { relu } };
  return kind === 'lstm' ? x.lstm(h!, c!, weights, attributes) : x[kind](h!, weights, attributes);
}

/** One layer of GRU, in one or both directions, whose reset gate multiplies the state before the product. */
function resetBefore(x: Value, h: Value, weights: Value[]): Value[] {
  const b = x.builder, dirs = weights.length / 4, n = h.shape[2] as number;
  const columns = (v: Value, from: number, count: number) => part(v, -1, from * n, count * n);
  const out = Array.from({ length: dirs }, (_, dir) => {
    const [input, hidden, inputBias, hiddenBias] = weights.slice(4 * dir) as [Value, Value, Value, Value];
    const { carries: [last], ys: [y] } = b.scan({ consts: [hidden, hiddenBias], carries: [part(h, 0, dir, 1).squeeze([0])], xs: [x.linear(input, inputBias)], reverse: dir === 1 }, (_, [w, c], [h], [x]) => {
      const gates = columns(x, 0, 2).add(h.linear(columns(w, 0, 2), columns(c, 0, 2))).sigmoid(), reset = columns(gates, 0, 1), update = columns(gates, 1, 1);
      const fresh = columns(x, 2, 1).add(reset.mul(h).linear(columns(w, 2, 1), columns(c, 2, 1))).tanh(), next = fresh.add(update.mul(h.sub(fresh)));
      return { carries: [next], ys: [next] };
    });
    return { last, y };
  });
  return [b.concatenate(out.map(({ y }) => y), 2), b.stack(out.map(({ last }) => last), 0)];
}
