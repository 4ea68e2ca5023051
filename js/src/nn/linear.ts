// Linear layers, embeddings, low-rank adaptation.

import type { GraphBuilder, Value } from '../graph/builder.js';
import type { Initial } from '../graph/initial.js';
import type { DType } from '../values/dtype.js';
import { listed } from '../safetensors/nearest.js';
import { checkOptions, RlxError } from '../values/errors.js';
import { checkBuild, contextOf, declare, during, fanIn, inside, type Layer, layer, type LoRAOptions, type LowRank, type NameOption } from './layer.js';
import { declareWeight, matrix, rowsAt, tiedWeight, times, type Weight } from './storage.js';

/** Options of {@link linear}. */
export interface LinearOptions extends NameOption {
  /** Omits the bias. */
  noBias?: boolean;
  /** The initial values of weight and bias: uniform in ±1/√in if not given, as in PyTorch. */
  init?: Initial;
  biasInit?: Initial;
  /** Replaces the parameter, [in, out]: the transpose of an embedding's table, for example. */
  weight?: Value;
  /** The full name of an earlier weight to use instead of a parameter: the table of an embedding, [out, in], as stored (`stored`). */
  tied?: string;
}

/**
 * x·weight + bias, [..., out], for x [..., in]. Parameters: `weight` [in, out], the transpose of PyTorch's, and `bias`
 * [out]. Errors: `attr`, and `symbol` for a symbolic in.
 */
export function linear(x: Value, out: number, options?: LinearOptions): Value {
  return layer(linear, 'linear', x, options, linearOptions, (l) => applyLinear(l, ...linearParams(l, out, options ?? {}), l.size(-1), out));
}

/** The options of a linear layer, for `checkOptions`. */
export const linearOptions = 'noBias init biasInit weight tied';

/** The weight of a linear layer, and its bias. */
export function linearParams(l: Layer, out: number, { noBias, init, biasInit, weight, tied }: LinearOptions = {}): [weight: Weight, bias: Value | undefined] {
  const into = l.size(-1);
  l.requireCount(out, 'out');
  l.require(!weight || tied === undefined, 'weight and tied are given: one must be left out');
  const w = weight ? { value: weight } : tied === undefined ? declareWeight(l, init, fanIn(into), [out, into], l.x.dtype as DType, false) : tiedWeight(l, tied);
  return [w, noBias ? undefined : l.param('bias', biasInit, fanIn(into), [out])];
}

/** The matrices that {@link lora} adds to a layer in the open scope, with the options; undefined where it adds none. */
export function lowRank({ b, x }: Layer, into: number, out: number): LowRank & { down: Value; up: Value } | undefined {
  const { lora: low } = contextOf(b);
  if (!low?.fits(b.scopeName)) return undefined;
  const add = (scope: string, init: Initial, shape: number[]) => b.scoped(scope, () => declare(b, 'weight', init, shape, x.dtype, false));
  return { ...low, down: add('lora_A', fanIn(into), [into, low.rank]), up: add('lora_B', 0, [low.rank, out]) };
}

/** x·weight + bias, plus what {@link lora} adds. */
export function applyLinear(l: Layer, weight: Weight, bias: Value | undefined, into: number, out: number): Value {
  const { x } = l, low = lowRank(l, into, out), packed = weight.format !== undefined;
  if (!low && !packed) return x.linear(matrix(weight, x.dtype), bias);
  let y: Value;
  if (!low) y = times(weight, x);
  else {
    const { down, up, dropout } = low, scale = low.alpha / low.rank;
    y = dropout || packed ? times(weight, x).add(l.drop(x, dropout).matmul(down).matmul(up).mul(scale)) : x.loraMatmul(matrix(weight, x.dtype), down, up, scale);
  }
  return bias ? y.add(bias) : y;
}

/**
 * Builds layers with frozen parameters. Their linear layers add x·lora_A·lora_B·alpha/rank, with
 * the trained parameters `lora_A/weight` [in, rank] and `lora_B/weight` [rank, out], which starts
 * as 0 (Hu et al., LoRA). Throws an {@link RlxError} of kind `name` for a target that no layer has the name of.
 */
export function lora<T>(b: GraphBuilder, options: LoRAOptions, build: () => T): T {
  checkBuild(lora, build);
  return inside(lora, b, () => {
    checkOptions('nn.lora', options, 'rank alpha dropout targets');
    const built = new Set<string>(), result = adapted(b, options ?? {}, build, built), missing = options?.targets?.filter((name) => !built.has(name));
    if (missing?.length) {
      const names = listed(missing, [...built]), others = names.includes('nearest') ? '' : `: there are ${[...built].slice(0, 5).join(', ') || 'none'}`;
      throw new RlxError('name', `nn.lora: no layer has the name of targets ${names}${others}`, { op: 'nn.lora', name: missing[0]! });
    }
    return result;
  });
}

/** {@link lora} for a part of a model: targets may be of other parts. `built` gets the names of the layers. */
export function adapted<T>(b: GraphBuilder, { rank = 8, alpha = rank, dropout = 0, targets }: LoRAOptions, build: () => T, built = new Set<string>()): T {
  if (!(Number.isInteger(rank) && rank > 0 && Number.isFinite(alpha) && dropout >= 0 && dropout < 1)) {
    throw new RlxError('attr', `nn.lora: rank is ${rank}, alpha ${alpha}, dropout ${dropout}: a rank is positive, alpha finite and a rate in [0, 1)`, { op: 'nn.lora' });
  }
  const fits = (scope: string) => {
    const name = scope.split('/').at(-1)!;
    built.add(name);
    return !targets || targets.includes(name);
  };
  return during(b, { frozen: true, lora: { rank, alpha, dropout, fits } }, build);
}

/** Options of {@link embedding}. */
export interface EmbeddingOptions extends NameOption {
  /** The initial value of the table: normal(0, 1) if not given, as in PyTorch. */
  init?: Initial;
  /** The element type of the table. `f32` if not given. */
  dtype?: DType;
  /** Replaces the parameter, [rows, width]. */
  table?: Value;
  /** Lets the gradient add rows in any order: faster, but not reproducible. */
  unordered?: boolean;
}

/**
 * The rows of a table at integer ids [...]: [..., width]. Parameter: `weight` [rows, width]. An id outside [0, rows) is
 * an error of kind `index` when the graph runs.
 */
export function embedding(ids: Value, rows: number, width: number, options?: EmbeddingOptions): Value {
  return layer(embedding, 'embedding', ids, options, 'init dtype table unordered', (l) => {
    const { init, dtype = 'f32', table, unordered } = options ?? {};
    if (!/^[iu]\d/.test(ids.dtype)) l.fail('dtype', 'ids are no integers');
    l.requireCount(rows, 'the number of rows');
    l.requireCount(width, 'the width');
    if (table) return table.embedding(ids, unordered);
    return rowsAt(declareWeight(l, init, { rule: 'normal', args: [0, 1] }, [rows, width], dtype, true), ids, dtype, unordered);
  }, true);
}

/** Options of {@link embeddingBag}. */
export interface EmbeddingBagOptions extends EmbeddingOptions {
  /** How the rows of a bag are combined: `'mean'` if not given. */
  mode?: 'mean' | 'sum' | 'max';
  /** Multiply the rows, in the shape of ids; for `'sum'` alone. */
  weights?: Value;
  /** An id that counts for nothing. A bag without other ids is 0. */
  padding?: number;
}

/**
 * The mean, the sum or the maximum of the rows of a table at integer ids [..., count]: [..., width], as
 * torch.nn.EmbeddingBag. Bags of various lengths are filled up with the id `padding`. Parameter and errors are those of {@link embedding}.
 */
export function embeddingBag(ids: Value, rows: number, width: number, options?: EmbeddingBagOptions): Value {
  const { mode = 'mean', weights, padding, ...table } = options ?? {};
  const y = embedding(ids, rows, width, options ? table : undefined);
  return inside(embeddingBag, ids.builder, () => {
    const fail = (message: string): never => { throw new RlxError('attr', `nn.embeddingBag: ${message}`, { op: 'nn.embeddingBag' }); };
    if (!['mean', 'sum', 'max'].includes(mode)) fail(`mode is ${String(mode)}: it must be mean, sum or max`);
    if (weights && mode !== 'sum') fail(`weights are given: mode is ${mode}, and must be sum`);
    if (ids.shape.length < 1) fail('ids have no axis: they must be [..., count]');
    const weighed = weights ? y.mul(weights.expandDims(-1)) : y;
    if (padding === undefined) return mode === 'max' ? weighed.reduceMax([-2]) : mode === 'sum' ? weighed.reduceSum([-2]) : weighed.mean([-2]);
    const counts = ids.ne(padding).expandDims(-1), number = counts.convert(y.dtype as 'f32').reduceSum([-2]);
    if (mode === 'max') {
      const largest = counts.select(weighed, y.builder.full(y.dtype as 'f32', y.shape, -Infinity)).reduceMax([-2]);
      return number.gt(0).select(largest, y.builder.full(y.dtype as 'f32', largest.shape, 0));
    }
    const sum = counts.select(weighed, y.builder.full(y.dtype as 'f32', y.shape, 0)).reduceSum([-2]);
    return mode === 'mean' ? sum.div(number.max(1)) : sum;
  });
}
