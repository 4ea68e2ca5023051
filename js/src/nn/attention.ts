// Multi-head attention.

import type { Value } from '../graph/builder.js';
import type { Initial } from '../graph/initial.js';
import type { Dim } from '../graph/types.js';
import { contextOf, isValue, type Layer, layer, type NameOption } from './layer.js';
import { applyLinear, linear } from './linear.js';
import { rmsNorm } from './norm.js';
import { pastOf, type RopeOptions, rotate } from './position.js';
import { softcap } from './vocabulary.js';

/** Options of {@link attention}. */
export interface AttentionOptions extends NameOption {
  /** The number of heads of keys and values, a divisor of heads (grouped-query attention). `heads` if not given. */
  kvHeads?: number;
  /** The number of features of a head. width / heads if not given. */
  headSize?: number;
  /** The source of keys and values, [..., n, features]. x if not given. */
  context?: Value;
  /** Declares the projections of x as the linear layers `q_proj`, `k_proj` and `v_proj` instead of one weight. With a context they always are. */
  separate?: boolean;
  /** Omits all biases. */
  noBias?: boolean;
  /** Hides later positions, aligned at the end. */
  causal?: boolean;
  /** Hides keys that are `window` positions back or more. */
  window?: number;
  /** Broadcasts to [..., heads, m, n]: booleans, true where a query attends to a key, or numbers that are added to the scores. */
  mask?: Value;
  /** Rotates queries and keys by their positions. */
  rope?: RopeOptions;
  /** Adds a linear bias of the distance to the scores (Press, Smith and Lewis). */
  alibi?: boolean;
  /** Normalises the heads of queries and keys by layers `q_norm` and `k_norm` (`rmsNorm`). */
  normQK?: boolean;
  /** Multiplies the scores. 1/√headSize if not given. */
  scale?: number;
  /** Replaces each score s by c·tanh(s/c). */
  softcap?: number;
  /** The rate at which weights of the attention are dropped in training. It needs all scores in memory. */
  dropout?: number;
  /** The initial value of the weights: `glorotUniform` of the joint projection, and that of `linear` of others, if not given. Biases begin as zeros. */
  init?: Initial;
  /** The initial value of the weight of `out_proj`. `init` if not given. */
  outInit?: Initial;
}

const known = 'kvHeads headSize context separate noBias causal window mask rope alibi normQK scale softcap dropout init outInit';

/**
 * Multi-head attention (Vaswani et al., Attention Is All You Need) of x, [..., m, width]: [..., m, width]. Parameters:
 * `in_proj_weight` [width, (heads + 2·kvHeads)·headSize], the projections of queries, keys and values side by side,
 * `in_proj_bias`, and the linear layer `out_proj`. With a `cache` causal self-attention appends keys and values to the
 * states `k_cache` and `v_cache`, [..., kvHeads, length, headSize].
 */
export function attention(x: Value, heads: number, options?: AttentionOptions): Value {
  return layer(attention, 'attention', x, options, known, (l) => {
    const plan = complete(l, heads, options ?? {});
    let [q, k, v] = project(l, plan);
    if (plan.o.normQK) [q, k] = [rmsNorm(q, { name: 'q_norm' }), rmsNorm(k, { name: 'k_norm' })];
    const { noBias, init, outInit = init } = plan.o;
    return linear(joined(weighted(l, plan, q, k, v)), l.size(-1), { name: 'out_proj', biasInit: 0, ...noBias && { noBias }, ...outInit !== undefined && { init: outInit } });
  });
}

/**
 * The attention of queries q, [..., heads, m, size], over keys and values, [..., kv heads, m,
 * size], with the heads concatenated: [..., m, heads·size]. It is {@link attention} without the
 * projections. It uses the options name, causal, window, mask, rope, alibi, scale, softcap and
 * dropout. With a `cache` it appends k and v, rotated, to the states `k_cache` and `v_cache`.
 */
export function attend(q: Value, k: Value, v: Value, options?: Pick<AttentionOptions, 'name' | 'causal' | 'window' | 'mask' | 'rope' | 'alibi' | 'scale' | 'softcap' | 'dropout'>): Value {
  return layer(attend, 'attend', q, options, 'causal window mask rope alibi scale softcap dropout', (l) => {
    for (const [name, one] of Object.entries({ k, v })) l.require(isValue(one), `${name} is no value of a graph`);
    l.rank(3, '[..., heads, time, size]');
    const heads = l.size(-3), headSize = l.size(-1), kvHeads = k.shape.at(-3) as number;
    if (k.shape.length !== q.shape.length || `${k.shape}` !== `${v.shape}` || k.dtype !== q.dtype || v.dtype !== q.dtype || k.shape.at(-1) !== headSize) {
      l.fail('shape', `k is ${k.dtype}[${k.shape}] and v ${v.dtype}[${v.shape}]: they have the type of q but for the number of heads`);
    }
    return joined(weighted(l, complete(l, heads, { ...options, kvHeads, headSize }), q, k, v));
  });
}

/** [..., heads, time, size] as [..., time, heads·size]. */
function joined(y: Value): Value {
  const [heads, , size] = y.shape.slice(-3) as [number, Dim, number], z = y.swapAxes({ axis1: -3, axis2: -2 });
  return z.reshape([...z.shape.slice(0, -2), heads * size]);
}

/** Rotates queries and keys, appends keys and values to the caches, and returns the weighted values, [..., heads, time, size]. */
function weighted(l: Layer, plan: Plan, q: Value, k: Value, v: Value): Value {
  if (plan.o.rope) [q, k] = rotate(l, plan.o.rope, plan.size, q, k);
  return plan.cached ? attendCache(l, plan, q, k, v) : attendHere(l, plan, q, k, v, ...masks(l, plan, q, k));
}

/** Checked options with their defaults. */
interface Plan { o: AttentionOptions; heads: number; kv: number; size: number; scale: number; rate: number; cached: boolean }

function complete(l: Layer, heads: number, o: AttentionOptions): Plan {
  l.rank(2, '[..., time, width]');
  l.requireCount(heads, 'heads');
  const width = l.size(-1), { kvHeads: kv = heads, headSize: size = width / heads, window = 0, softcap = 0, dropout = 0, scale = 1 / Math.sqrt(size) } = o;
  l.require(o.headSize !== undefined || width % heads === 0, `${heads} heads do not divide the width, ${width}`);
  l.requireCount(size, 'headSize');
  l.require(Number.isInteger(kv) && kv >= 1 && heads % kv === 0, `${kv} heads of keys do not divide ${heads} heads`);
  l.requireCount(window, 'window', 0);
  l.require(softcap >= 0, `softcap is ${softcap}, negative`);
  l.requireRate(dropout);
  for (const name of ['context', 'mask'] as const) l.require(o[name] === undefined || isValue(o[name]), `${name} is no value of a graph`);
  l.require(!o.context || !(o.rope || o.causal || window || o.alibi), 'a context with rope, causal, window or alibi, which are for self-attention');
  const cached = !!contextOf(l.b).cache && !o.context;
  l.require(!cached || !!o.causal && !o.alibi && !o.mask, 'nn.cache is in use: causal must be set, alibi and mask must not');
  const rate = dropout > 0 && l.training ? dropout : 0;
  l.require(!cached || rate === 0, `nn.cache is in use in training: dropout is ${dropout}, it must be 0`);
  return { o, heads, kv, size, scale, cached, rate };
}

/** Queries, keys and values, [..., heads, time, size]. */
function project(l: Layer, { o, heads, kv, size }: Plan): [q: Value, k: Value, v: Value] {
  const { x } = l, inner = heads * size, outer = kv * size, { noBias, init } = o;
  const split = (y: Value, n: number) => y.reshape([...y.shape.slice(0, -1), n, size]).swapAxes({ axis1: -3, axis2: -2 });
  if (o.separate || o.context) {
    const from = o.context ?? x;
    const to = (name: string, of: Value, n: number) => split(linear(of, n * size, { name, biasInit: 0, ...noBias && { noBias }, ...init !== undefined && { init } }), n);
    return [to('q_proj', x, heads), to('k_proj', from, kv), to('v_proj', from, kv)];
  }
  const width = l.size(-1), out = inner + 2 * outer, weight = l.param('in_proj_weight', init, { rule: 'glorot_uniform', args: [] }, [width, out]);
  const all = applyLinear(l, { value: weight }, noBias ? undefined : l.param('in_proj_bias', undefined, 0, [out]), width, out);
  const [q, k, v] = all.split({ axis: -1, sizes: [inner, outer, outer] }) as [Value, Value, Value];
  return [split(q, heads), split(k, kv), split(v, kv)];
}

/** Appends keys and values to the caches, and returns the weighted values. Each query attends to the positions up to its own. */
function attendCache(l: Layer, { o, scale }: Plan, q: Value, k: Value, v: Value): Value {
  const context = contextOf(l.b).cache!, { rows, row } = context, { window = 0, softcap = 0 } = o;
  const past = pastOf(l.b, k.shape.at(-2)!, (kind, message) => l.fail(kind, message));
  if (context.counts && (q.shape.length !== 4 || q.shape[0] !== past.shape[0])) {
    l.fail('shape', `the past of the cache is i32[${past.shape}]: x is [sequences, time, width]`);
  }
  const write = (name: string, x: Value) => {
    const shape: Dim[] = [...x.shape];
    shape[shape.length - 2] = context.length;
    if (rows) shape[0] = rows;
    const before = l.b.state(name, x.dtype as 'f32', shape), next = context.counts ? putRows(before, past, x, row) : putAt(before, past, x);
    l.b.setState(name, next);
    return next;
  };
  return q.cachedAttention(write('k_cache', k), write('v_cache', v), past, row, { scale, softcap, window });
}

/** A cache with x, [..., time, size], from one position on. */
function putAt(state: Value, past: Value, x: Value): Value {
  const { builder: b } = state, at = x.shape.length - 2;
  return state.dynamicUpdateSlice(x, b.stack(x.shape.map((_, i) => i === at ? past : b.full('i32', [], 0)), 0));
}

/** A cache with x, [sequences, heads, time, size], from a position of each sequence on, in rows if they are given. Positions beyond its length are dropped. */
function putRows(state: Value, past: Value, x: Value, rows?: Value): Value {
  const { builder: b } = state, shape = [x.shape[0]!, x.shape[2]!];
  const row = rows ? rows.expandDims(1).broadcastTo(shape) : b.iota({ dtype: 'i32', axis: 0, shape }), position = b.iota({ dtype: 'i32', axis: 1, shape }).add(past.expandDims(1));
  return state.scatter(b.stack([row, position], 2), x.transpose([0, 2, 1, 3]), { axes: [0, 2], outside: 'drop', unique: true });
}

/** Masks of booleans and of numbers. */
function masks(l: Layer, { o, heads }: Plan, q: Value, k: Value): [seen: Value | undefined, added: Value | undefined] {
  const seen = o.mask?.dtype === 'bool' ? o.mask : undefined;
  const added = o.mask && o.mask.dtype !== 'bool' ? o.mask : undefined;
  if (added && added.dtype !== q.dtype) l.fail('dtype', `the mask is ${added.dtype}[${added.shape}]: it is bool or of the type of x`);
  if (!o.alibi) return [seen, added];
  const slopes = l.b.alibi([heads, q.shape.at(-2)!, k.shape.at(-2)!]).convert(q.dtype as 'f32'), bias = added ? slopes.add(added) : slopes;
  return [undefined, seen ? seen.select(bias, -Infinity) : bias];
}

/** The weighted values, [..., heads, time, size]. */
function attendHere(l: Layer, { o, heads, kv, scale, rate }: Plan, q: Value, k: Value, v: Value, seen?: Value, added?: Value): Value {
  const causal = !!o.causal, window = o.window ?? 0, cap = o.softcap ?? 0;
  if (rate === 0) return q.attention(k, v, seen ?? added, { scale, softcap: cap, causal, window });
  const repeats = heads / kv, axis = k.shape.length - 3;
  if (repeats > 1) [k, v] = [k.repeat({ axis, repeats }), v.repeat({ axis, repeats })];
  let scores = softcap(q.mul(scale).matmul(k.swapAxes({ axis1: -2, axis2: -1 })), cap);
  if (added) scores = scores.add(added);
  const hide = (by: Value) => { scores = by.select(scores, -Infinity); };
  if (seen) hide(seen);
  if (causal || window) hide(l.b.windowMask({ shape: [q.shape.at(-2)!, k.shape.at(-2)!], left: window ? window - 1 : -1, right: causal ? 0 : -1 }));
  return l.drop(scores.softmax(-1), rate).matmul(v);
}
