// Linear layers, embeddings, low-rank adaptation.

import type { GraphBuilder, Value } from '../graph/builder.js';
import type { Initial } from '../graph/initial.js';
import type { DType } from '../values/dtype.js';
import { checkOptions, RlxError } from '../values/errors.js';
import { checkBuild, contextOf, declare, during, fanIn, inside, type Layer, layer, type LoRAOptions, type NameOption } from './layer.js';

/** Options of {@link linear}. */
export interface LinearOptions extends NameOption {
  /** Omits the bias. */
  noBias?: boolean;
  /** The initial values of weight and bias: uniform in ±1/√in if not given, as in PyTorch. */
  init?: Initial;
  biasInit?: Initial;
  /** Replaces the parameter, [in, out]: the transpose of an embedding's table, for example. */
  weight?: Value;
}

/**
 * x·weight + bias, [..., out], for x [..., in]. Parameters: `weight` [in, out], the transpose of PyTorch's, and `bias`
 * [out]. Errors: `attr`, and `symbol` for a symbolic in.
 */
export function linear(x: Value, out: number, options?: LinearOptions): Value {
  return layer(linear, 'linear', x, options, 'noBias init biasInit weight', (l) => {
    const { noBias, init, biasInit, weight } = options ?? {}, into = l.size(-1);
    l.requireCount(out, 'out');
    const w = weight ?? l.param('weight', init, fanIn(into), [into, out]);
    return applyLinear(l, w, noBias ? undefined : l.param('bias', biasInit, fanIn(into), [out]), into, out);
  });
}

/** x·weight + bias, plus what {@link lora} adds. */
export function applyLinear(l: Layer, weight: Value, bias: Value | undefined, into: number, out: number): Value {
  const { lora: low } = contextOf(l.b);
  if (!low) return l.x.linear(weight, bias);
  const add = (scope: string, init: Initial, shape: number[]) => l.b.scoped(scope, () => declare(l.b, 'weight', init, shape, l.x.dtype, false));
  const down = add('lora_A', fanIn(into), [into, low.rank]), up = add('lora_B', 0, [low.rank, out]), scale = low.alpha / low.rank;
  const y = low.dropout === 0
    ? l.x.loraMatmul(weight, down, up, scale)
    : l.x.matmul(weight).add(l.drop(l.x, low.dropout).matmul(down).matmul(up).mul(scale));
  return bias ? y.add(bias) : y;
}

/**
 * Builds layers whose parameters are frozen, and whose linear layers add x·lora_A·lora_B·alpha/rank, with the trained
 * parameters `lora_A/weight` [in, rank] and `lora_B/weight` [rank, out], which begins as 0 (Hu et al., LoRA).
 */
export function lora<T>(b: GraphBuilder, options: LoRAOptions, build: () => T): T {
  checkBuild(lora, build);
  return inside(lora, b, () => {
    checkOptions('nn.lora', options, 'rank alpha dropout');
    const { rank = 8, alpha = rank, dropout = 0 } = options ?? {};
    if (!(Number.isInteger(rank) && rank > 0 && Number.isFinite(alpha) && dropout >= 0 && dropout < 1)) {
      throw new RlxError('attr', `nn.lora: rank is ${rank}, alpha ${alpha}, dropout ${dropout}: a rank is positive, alpha finite and a rate in [0, 1)`, { op: 'nn.lora' });
    }
    return during(b, { frozen: true, lora: { rank, alpha, dropout } }, build);
  });
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
    return (table ?? l.param('weight', init, { rule: 'normal', args: [0, 1] }, [rows, width], dtype)).embedding(ids, unordered);
  }, true);
}
