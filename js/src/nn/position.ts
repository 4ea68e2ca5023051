// Positions in sequences, and the memory of earlier ones.

import type { GraphBuilder, Value } from '../graph/builder.js';
import type { Initial } from '../graph/initial.js';
import type { Dim } from '../graph/types.js';
import { checkOptions, RlxError, shown } from '../values/errors.js';
import { builderOf, contextOf, inside, Layer, layer, type NameOption } from './layer.js';

/** The state that counts the positions in the caches, an i32 of rank 0: see {@link cache}. */
export const cacheState = 'cache/length';

/** Options of {@link cache}. */
export interface CacheOptions {
  /**
   * The number of positions that came before in each sequence of x, i32[sequences] for an x of [sequences, time, width],
   * instead of the state {@link cacheState}: the program counts. Positions at `length` and after are not kept. Recurrent layers
   * do not take it.
   */
  past?: Value;
  /** The number of sequences in the states, that of x if not given: with `past` and `row`. */
  rows?: number;
  /** The sequence of the states that each sequence of x continues, i32[sequences], below `rows`; none twice but for those with a `past` of -1, which are padding: they read and write nothing. */
  row?: Value;
}

/**
 * Has the layers from here on continue the sequence of earlier runs: causal self-attention keeps the keys and values of
 * at most `length` positions in states, recurrent layers and `mamba` their last values. A run then takes the next
 * positions alone. The state {@link cacheState} counts them; set to 0 it begins a new sequence. A run past `length`
 * positions fails with an error of kind `index`. The cost of attention follows the positions that came before, not `length`.
 */
export function cache(b: GraphBuilder, length: number, options?: CacheOptions): void {
  inside(cache, b, () => {
    checkOptions('nn.cache', options, 'past rows row');
    if (!(Number.isInteger(length) && length >= 1)) throw new RlxError('attr', `nn.cache: the length is ${shown(length)}, not an integer of at least 1`, { op: 'nn.cache' });
    const { past, rows, row } = options ?? {};
    for (const [name, x] of Object.entries({ past, row })) {
      if (x && (x.dtype !== 'i32' || x.shape.length !== 1)) throw new RlxError('shape', `nn.cache: ${name} is ${x.dtype}[${x.shape}]: it must be i32[sequences]`, { op: 'nn.cache' });
    }
    const whole = !rows && !row;
    if (!whole && !(past && row && Number.isInteger(rows) && rows! >= 1)) throw new RlxError('attr', `nn.cache: rows is ${shown(rows)}: with rows, an integer of at least 1, past and row must be given, and with row both others`, { op: 'nn.cache' });
    contextOf(b).cache = { length, ...past && { past, counts: true }, ...!whole && { rows: rows!, row: row! } };
  });
}

/** The number of positions in the cache, for a run that adds n: all layers of a graph add the same number. */
export function pastOf(b: GraphBuilder, n: Dim, fail: (kind: 'shape', message: string) => never): Value {
  const context = contextOf(b).cache!, { root } = b;
  if (!context.counts && typeof n === 'number' && n > context.length) fail('shape', `${n} positions are added to the cache: its length is ${context.length}`);
  if (!context.past) {
    context.steps = n;
    root.unscoped(() => {
      const past = context.past = root.state(cacheState, 'i32');
      const last = past.add(root.dimSize({ dtype: 'i32', sizes: [n] })).sub(1).checkIndex({ bound: [context.length], what: 'position in the cache' });
      root.setState(cacheState, last.add(1));
    });
  }
  if (!context.counts && context.steps !== n) fail('shape', `${n} positions are added to the cache, and ${context.steps} by another layer`);
  return context.past!;
}

/** A state of a layer that continues a sequence, zeros at its start, and a function that sets it after n more positions. */
export function carried(l: Layer, name: string, n: Dim, shape: readonly Dim[]): [value: Value, keep: (next: Value) => void] {
  const { b } = l, dtype = l.x.dtype as 'f32';
  if (!contextOf(b).cache) return [b.full(dtype, shape, 0), () => {}];
  if (contextOf(b).cache?.counts) l.fail('attr', 'the cache has the option past, which recurrent layers do not take');
  const past = pastOf(b, n, (kind, message) => l.fail(kind, message)), state = b.state(name, dtype, shape);
  return [past.eq(0).select(b.full(dtype, shape, 0), state), (next) => b.setState(name, next)];
}

/**
 * The positions of n elements of a sequence, i32[n]: from 0, or with a {@link cache} after those of earlier runs. With the option
 * `past` of the cache they are i32[sequences, n].
 */
export function positions(b: GraphBuilder, n: Dim): Value {
  return inside(positions, b, () => positionsOf(b, n));
}

/** See {@link positions}. */
export function positionsOf(b: GraphBuilder, n: Dim): Value {
  const from0 = b.iota({ dtype: 'i32', axis: 0, shape: [n] });
  const fail = (kind: 'shape', message: string): never => { throw new RlxError(kind, `nn.positions: ${message}`, { op: 'nn.positions' }); };
  if (!contextOf(b).cache) return from0;
  const past = pastOf(b, n, fail);
  return from0.add(past.shape.length > 0 ? past.expandDims(1) : past);
}

/** Options of {@link positionalEmbedding}. */
export interface PositionalEmbeddingOptions extends NameOption {
  /** The initial value of the table: normal(0, 0.02) if not given, as in GPT-2. */
  init?: Initial;
}

/** x, [..., time, width], plus a learned row for each position, at most `length` of them. Parameter: `weight` [length, width]. */
export function positionalEmbedding(x: Value, length: number, options?: PositionalEmbeddingOptions): Value {
  return layer(positionalEmbedding, 'positional_embedding', x, options, 'init', (l) => {
    l.rank(2, '[..., time, width]');
    l.requireCount(length, 'the length');
    const time = x.shape.at(-2)!, width = l.size(-1);
    if (typeof time === 'number' && time > length) l.fail('shape', `x has more positions than the length, ${length}`);
    const table = l.param('weight', options?.init, { rule: 'normal', args: [0, 0.02] }, [length, width]);
    const { cache } = contextOf(l.b);
    if (cache) {
      const at = positionsOf(l.b, time);
      // Positions that the cache checks, and those of padding, are not checked again.
      return x.add(cache.counts || cache.length <= length ? table.take(at, 0, 'clip') : table.embedding(at));
    }
    return x.add(time === length ? table : table.slice({ start: [0, 0], size: [time, width], stride: [1, 1] }));
  });
}

/**
 * x, [..., time, width], plus sines and cosines of the positions (Vaswani et al., Attention Is All You Need):
 * sin(p·10000^(−2i/width)) at 2i and the cosine at 2i + 1. The width is even.
 */
export function sinusoidalEncoding(x: Value): Value {
  return inside(sinusoidalEncoding, builderOf(sinusoidalEncoding, x), () => {
    const l = new Layer(x, 'sinusoidal_encoding'), { b } = l;
    l.rank(2, '[..., time, width]');
    const width = l.size(-1), time = x.shape.at(-2)!;
    if (width % 2) l.fail('shape', 'the width of x is odd');
    const [cos, sin] = positionsOf(b, time).ropeTable({ size: width });
    return x.add(b.stack([sin, cos], 2).reshape([time, width]).convert(x.dtype as 'f32'));
  });
}

/** Options of rotary positions (Su et al., RoFormer). */
export interface RopeOptions {
  /** The base of the angles. 10,000 if not given. */
  base?: number;
  /** The number of features of a head that are rotated, the first ones: even. All if not given. */
  size?: number;
  /** Pairs neighbours, as in GPT-J; if not set the halves of the rotated features are paired, as in GPT-NeoX and Llama. */
  interleaved?: boolean;
  /**
   * The angles of one position for each pair, size / 2 of them, instead of base^(−2i/size), for
   * models with an extended context.
   */
  frequencies?: readonly number[];
  /** Multiplies the rotated features, as YaRN has it. 1 if not given. */
  amplitude?: number;
}

/** Applies rotary positions to heads of queries and keys, [..., heads, time, features]. */
export function rotate(l: Layer, o: RopeOptions, features: number, q: Value, k: Value): [q: Value, k: Value] {
  const { base, size, interleaved, frequencies, amplitude = 1 } = o;
  const n = size ?? (frequencies ? 2 * frequencies.length : features);
  l.require(Number.isInteger(n) && n > 0 && n % 2 === 0 && n <= features, `${n} of ${features} features are rotated: an even number, at most all`);
  l.require(base === undefined || base > 0 && base < Infinity, `the base of rotary positions is ${base}, not positive and finite`);
  l.require(!frequencies || frequencies.length === n / 2, `there are ${frequencies?.length} frequencies, not half of the size, ${n}`);
  l.require(amplitude > 0 && amplitude < Infinity, `the amplitude is ${amplitude}, not positive and finite`);
  const [cos, sin] = angles(l, o, n, q.shape.at(-2)!).map((table) => {
    const scaled = amplitude === 1 ? table : table.mul(amplitude);
    return (scaled.shape.length > 2 ? scaled.expandDims(1) : scaled).convert(q.dtype as 'f32'); // positions of each sequence, for all heads
  }) as [Value, Value];
  return [q.rope(cos, sin, interleaved), k.rope(cos, sin, interleaved)];
}

/** The cosines and sines of the angles of n positions, f32[n, size / 2]. */
function angles({ b }: Layer, { base, frequencies }: RopeOptions, size: number, n: Dim): [cos: Value, sin: Value] {
  const at = positionsOf(b, n);
  if (!frequencies) return at.ropeTable({ size, ...base !== undefined && { base } });
  const by = at.convert('f32').expandDims(-1).mul(b.constant('f32', [frequencies.length], Float32Array.from(frequencies)));
  return [by.cos(), by.sin()];
}
