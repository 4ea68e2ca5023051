// Mixtures of experts.

import type { Value } from '../graph/builder.js';
import type { Initial } from '../graph/initial.js';
import { contextOf, fanIn, type Layer, layer, type NameOption } from './layer.js';
import { linear } from './linear.js';
import { stackedInitial } from './stack.js';
import { declarePacked, storageOf } from './storage.js';
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
      const [w1, format1] = declareExperts(l, init, 'w1', [experts, width, columns]), [w2, format2] = declareExperts(l, init, 'w2', [experts, hidden, width]);
      // Up to two rows an expert, each row of a grouped product reads its own matrix.
      if (format1 ?? format2 ?? (contextOf(b).training === false && capacity === tokens && k * tokens <= 2 * experts)) {
        const groups = chosen.reshape([tokens * k]);
        const product = (rows: Value, w: Value, format?: string) => format === undefined ? rows.groupedMatmul(w, groups) : rows.quantizedGroupedMatmul(w, groups, { format });
        const repeated = rows.broadcastInDim({ shape: [tokens, k, width], axes: [0, 2] }).reshape([tokens * k, width]);
        return product(apply(product(repeated, w1, format1)), w2, format2).reshape([tokens, k, width]).mul(weights.expandDims(-1)).sum([1]);
      }
      const h = rows.moeDispatch(slots, [experts * capacity]).reshape([experts, capacity, width]);
      return apply(h.matmul(w1)).matmul(w2).reshape([experts * capacity, width]).moeCombine(weights, slots);
    });
    return [made.reshape(x.shape), loss];
  });
}

/** Declares a weight of all experts, [experts, in, out], or the rows of its transposes packed in a format, [experts, out, bytes]. */
function declareExperts(l: Layer, init: Initial | undefined, name: string, [experts, into, out]: [number, number, number]): [w: Value, format?: string] {
  const { format } = storageOf(l, name);
  if (format === undefined) return [l.param(name, undefined, stackedInitial(init ?? fanIn(into), [into, out]), [experts, into, out])];
  return [declarePacked(l, name, format, [experts, out], into), format];
}
