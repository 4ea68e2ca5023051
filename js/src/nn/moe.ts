// Mixtures of experts.

import type { Value } from '../graph/builder.js';
import type { Initial } from '../graph/initial.js';
import { part } from '../graph/part.js';
import { RlxError } from '../values/errors.js';
import { builderOf, checkBuild, contextOf, fanIn, inside, type Layer, layer, type NameOption } from './layer.js';
import { linear } from './linear.js';
import { activeBlocks, stackedInitial } from './stack.js';
import { declarePacked, storageOf, type Weight } from './storage.js';
import { type Activation, activationOf } from './transformer.js';

/** Options of {@link moe}. */
export interface MoEOptions extends NameOption {
  /** The number of features within an expert. Four times the width if not given. */
  hidden?: number;
  /** The number of experts of each token. 2 if not given. */
  k?: number;
  /** Limits the tokens of an expert to capacity·k·tokens/experts, rounded up; tokens past it are dropped. No limit if not given. */
  capacity?: number;
  /** `swiglu` if not given. */
  activation?: Activation;
  /** The initial value of the weights: uniform in ±1/√in if not given, as of `linear`. */
  init?: Initial;
}

/**
 * A mixture of experts: for each token of x, [..., width], the sum of the results of its k best experts, MLPs without
 * biases, by the softmax of the router's scores, normalised to sum to 1 (Shazeer et al. 2017; as in Mixtral). `loss` is the
 * load-balancing loss, of rank 0 (Fedus, Zoph and Shazeer, Switch Transformers), to be added to that of the model with a
 * weight such as 0.01. In inference (`infer`) few tokens read the weights of the chosen experts alone, as tokens always do with packed experts
 * (`stored`), which ignore `capacity`. Parameters: `gate/weight` [width, experts], `experts/w1` [experts, width, hidden], with a gated
 * activation twice as wide, and `experts/w2` [experts, hidden, width]. Sizes are constant.
 */
export function moe(x: Value, experts: number, options?: MoEOptions): [y: Value, loss: Value] {
  return layer(moe, 'moe', x, options, 'hidden k capacity activation init', (l) => {
    const width = l.size(-1), { hidden = 4 * width, k = 2, capacity: share, activation = 'swiglu', init } = options ?? {}, { b } = l;
    const { apply, gated } = activationOf('moe', activation);
    l.requireCount(hidden, 'hidden');
    l.requireCount(experts, 'experts');
    l.requireCount(k, 'k');
    l.require(k <= experts, `k is ${k} of ${experts} experts`);
    l.require(share === undefined || share > 0, `capacity is ${share}, not positive`);
    if (!x.shape.every((n) => typeof n === 'number')) l.fail('symbol', 'the sizes of x are constant');
    const tokens = (x.shape.slice(0, -1) as number[]).reduce((n, d) => n * d, 1);
    const capacity = share === undefined ? tokens : Math.min(tokens, Math.ceil(share * k * tokens / experts));
    const rows = x.reshape([tokens, width]), logits = linear(rows, experts, { name: 'gate', noBias: true, ...init !== undefined && { init } });
    const [weights, chosen, slots, loss] = logits.moeRoute({ k, capacity, normalize: true });
    const columns = gated ? 2 * hidden : hidden;
    const made = b.scoped('experts', () => {
      const w1 = declareMatrices(l, init, 'w1', [experts, width, columns]), w2 = declareMatrices(l, init, 'w2', [experts, hidden, width]);
      // Up to two rows an expert, each row of a grouped product reads its own matrix.
      if (w1.format ?? w2.format ?? (contextOf(b).training === false && capacity === tokens && k * tokens <= 2 * experts)) {
        return chosenExperts(rows, weights, chosen, (y, groups) => grouped(w2, apply(grouped(w1, y, groups)), groups));
      }
      const h = rows.moeDispatch(slots, [experts * capacity]).reshape([experts, capacity, width]);
      return apply(h.matmul(w1.value)).matmul(w2.value).reshape([experts * capacity, width]).moeCombine(weights, slots);
    });
    return [made.reshape(x.shape), loss];
  });
}

/**
 * For each row of x, [tokens, width], the sum of the results of k experts times `weights`, [tokens, k]. `chosen` are their numbers,
 * i32[tokens, k], as `moeRoute` returns them. `build` returns the results [tokens·k, out] of rows [tokens·k, width], each by the expert of
 * groups, i32[tokens·k], such as products by {@link groupedLinear}.
 */
export function chosenExperts(x: Value, weights: Value, chosen: Value, build: (x: Value, groups: Value) => Value): Value {
  checkBuild(chosenExperts, build);
  return inside(chosenExperts, builderOf(chosenExperts, x), () => {
    const [tokens, width] = x.shape as [number, number], [, k] = chosen.shape as [number, number], all = tokens * k;
    if (x.shape.length !== 2 || `${weights.shape}` !== `${[tokens, k]}` || `${chosen.shape}` !== `${[tokens, k]}`) {
      throw new RlxError('shape', `nn.chosenExperts: x is [${x.shape}], weights [${weights.shape}] and chosen [${chosen.shape}]: they must be [tokens, width], [tokens, k] and [tokens, k]`, { op: 'nn.chosenExperts' });
    }
    const y = build(x.broadcastInDim({ shape: [tokens, k, width], axes: [0, 2] }).reshape([all, width]), chosen.reshape([all]));
    return y.reshape([tokens, k, y.shape.at(-1)!]).mul(weights.expandDims(-1)).sum([1]);
  });
}

/**
 * The tokens of an expert are in blocks of an eighth of all tokens, but of `leastQueueBlock` at least: a larger block is computed in part
 * for nothing, and each reads the weights.
 */
const leastQueueBlock = 32, queueBlocks = 8;

/**
 * The sum of the results of the experts of each row, [tokens, width], by scores [tokens, experts]. Experts have parameters of their own, in
 * scopes of their numbers, and each a queue of the tokens that chose it, in blocks; empty blocks are not computed, nor are the weights of
 * experts read that no token chose.
 */
export function expertsInQueues(rows: Value, scores: Value, route: { k: number; normalize: boolean }, build: (x: Value) => Value): Value {
  const [tokens, experts] = scores.shape as [number, number], width = rows.shape[1]!, { builder: b } = rows;
  const size = Math.min(tokens, Math.max(leastQueueBlock, Math.ceil(tokens / queueBlocks))), blocks = Math.ceil(tokens / size), all = experts * blocks * size;
  const [shares, chosen, slots] = scores.moeRoute({ ...route, capacity: blocks * size });
  const queues = rows.moeDispatch(slots, [all]).reshape([experts, blocks, size, width]);
  const starts = b.iota({ dtype: 'i32', axis: 1, shape: [experts, blocks] }).mul(size);
  const active = chosen.oneHot({ classes: [experts], dtype: 'i32' }).sum([0, 1]).expandDims(1).gt(starts);
  const of = (v: Value, e: number) => part(v, 0, e, 1).reshape(v.shape.slice(1));
  const parts = Array.from({ length: experts }, (_, e) => b.scope(`${e}`, () => activeBlocks(of(queues, e), of(active, e), build)));
  return b.concatenate(parts, 0).reshape([all, width]).moeCombine(shares, slots);
}

/** Options of {@link groupedLinear}. */
export interface GroupedLinearOptions extends NameOption {
  /** The initial value of the weight: uniform in ±1/√in if not given, as of `linear`. */
  init?: Initial;
}

/**
 * Row i of x, [m, in], times matrix groups[i], i32[m], of `count` matrices: [m, out]. A number out of range gives 0. Parameter: `weight`
 * [count, in, out]; with a format (`stored`) it is u8 [count, out, bytes], frozen, and the rows of the chosen matrices alone are read,
 * without unpacking them in memory. `lora` adds nothing to it.
 */
export function groupedLinear(x: Value, groups: Value, count: number, out: number, options?: GroupedLinearOptions): Value {
  return layer(groupedLinear, 'grouped_linear', x, options, 'init', (l) => {
    l.requireCount(count, 'count');
    l.requireCount(out, 'out');
    return grouped(declareMatrices(l, options?.init, 'weight', [count, l.size(-1), out]), x, groups);
  });
}

/** Declares matrices, [count, in, out], or the rows of their transposes packed in a format, [count, out, bytes]. */
function declareMatrices(l: Layer, init: Initial | undefined, name: string, [count, into, out]: [number, number, number]): Weight {
  const { format } = storageOf(l.b, name);
  if (format === undefined) return { value: l.param(name, undefined, stackedInitial(init ?? fanIn(into), [into, out]), [count, into, out]) };
  return { value: declarePacked(l, name, format, [count, out], into), format };
}

/** The rows of x, each times the matrix of its group. */
function grouped({ value, format }: Weight, x: Value, groups: Value): Value {
  return format === undefined ? x.groupedMatmul(value, groups) : x.quantizedGroupedMatmul(value, groups, { format });
}
