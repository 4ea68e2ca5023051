// Transformer blocks.

import type { Value } from '../graph/builder.js';
import type { Initial } from '../graph/initial.js';
import { unknownName } from '../values/errors.js';
import { attention, type AttentionOptions } from './attention.js';
import { dropout, residual } from './context.js';
import { type Layer, layer, type NameOption } from './layer.js';
import { linear } from './linear.js';
import { layerNorm, rmsNorm } from './norm.js';
import type { RopeOptions } from './position.js';

/**
 * The function between the linear layers of an {@link mlp}. `relu2` is the square of relu. `swiglu` and `geglu` halve the
 * result of the first layer into a gate, first, and a value (Shazeer, GLU Variants Improve Transformer).
 */
export type Activation = 'gelu' | 'gelu_tanh' | 'relu' | 'relu2' | 'silu' | 'tanh' | 'swiglu' | 'geglu';

/** The function of an activation, and whether it is gated. */
export function activationOf(kind: string, name: Activation): { apply: (x: Value) => Value; gated: boolean } {
  const known: Record<Activation, (x: Value) => Value> = {
    gelu: (x) => x.gelu(), gelu_tanh: (x) => x.geluTanh(), relu: (x) => x.relu(), relu2: (x) => x.relu().square(),
    silu: (x) => x.silu(), tanh: (x) => x.tanh(), swiglu: (x) => x.swiglu(-1), geglu: (x) => x.geglu(-1),
  };
  if (!Object.hasOwn(known, name)) throw unknownName(`nn.${kind}: there is no activation`, name, Object.keys(known), `nn.${kind}`);
  return { apply: known[name], gated: name === 'swiglu' || name === 'geglu' };
}

/** Options of {@link mlp}. */
export interface MLPOptions extends NameOption {
  /** `gelu` if not given. */
  activation?: Activation;
  /** Omits the biases. */
  noBias?: boolean;
  /** The rate at which hidden features are dropped in training. */
  dropout?: number;
  /** The initial value of the weights, that of `linear` if not given, and of the weight of `linear2`, `init` if not given. */
  init?: Initial;
  outInit?: Initial;
  /** The initial value of the biases: that of `linear` if not given. */
  biasInit?: Initial;
}

/** linear2(activation(linear1(x))) for x [..., width], with `hidden` features in between: [..., width]. A gated activation doubles the width of linear1. */
export function mlp(x: Value, hidden: number, options?: MLPOptions): Value {
  return layer(mlp, 'mlp', x, options, 'activation noBias dropout init outInit biasInit', (l) => feedForward(l, hidden, options ?? {}));
}

function feedForward(l: Layer, hidden: number, { activation = 'gelu', noBias, dropout: rate = 0, init, outInit = init, biasInit }: MLPOptions, x = l.x): Value {
  const { apply, gated } = activationOf(l.kind, activation), width = l.size(-1);
  l.requireCount(hidden, 'hidden');
  const bias = { ...noBias && { noBias }, ...biasInit !== undefined && { biasInit } };
  const h = apply(linear(x, gated ? 2 * hidden : hidden, { name: 'linear1', ...bias, ...init !== undefined && { init } }));
  return linear(l.drop(h, rate), width, { name: 'linear2', ...bias, ...outInit !== undefined && { init: outInit } });
}

/** Options of {@link transformerBlock}. */
export interface TransformerOptions extends NameOption {
  /** The number of features within the MLP. Four times the width if not given. */
  hidden?: number;
  /** That of the MLP. `gelu` if not given. */
  activation?: Activation;
  /** Normalises after each sum, as the first transformers did, not before each layer. */
  postNorm?: boolean;
  /** Uses `rmsNorm` instead of `layerNorm`. */
  rmsNorm?: boolean;
  /** That of the norms. */
  epsilon?: number;
  /** Omits all biases, those of the norms included. */
  noBias?: boolean;
  /** The rate at which results of the layers, weights of the attention and features within the MLP are dropped in training. */
  dropout?: number;
  /** Options of the self-attention; its `noBias`, `dropout`, `init` and `outInit` are those of the block if not given. */
  attention?: AttentionOptions;
  /** Those of `attention`, for short. */
  causal?: boolean;
  kvHeads?: number;
  rope?: RopeOptions;
  /** Adds attention to a context, [..., n, features], after the self-attention. */
  context?: Value;
  /** The initial value of the weights, that of the layers if not given, and of the weights before each sum, `init` if not given. */
  init?: Initial;
  outInit?: Initial;
  /** The number of blocks of the model: `init` is then normal(0, 0.02) and `outInit` normal(0, 0.02/√(2·depth)), as in GPT-2, and biases begin as zeros. */
  depth?: number;
}

const known = 'hidden activation postNorm rmsNorm epsilon noBias dropout attention causal kvHeads rope context init outInit depth';

/**
 * A transformer block of x, [..., time, width]: x plus `attention` of its norm, and that plus the `mlp` of its norm.
 * Parameters have the names of PyTorch's TransformerEncoderLayer and TransformerDecoderLayer: `self_attn`,
 * `multihead_attn` for a context, `linear1`, `linear2`, `norm1`, `norm2`, `norm3`.
 */
export function transformerBlock(x: Value, heads: number, options?: TransformerOptions): Value {
  return layer(transformerBlock, 'transformer_block', x, options, known, (l) => {
    const o = complete(l, options ?? {}), { attention: self, context, dropout: rate } = o;
    let norms = 0, y = x;
    const sum = (build: (x: Value) => Value) => {
      const name = `norm${++norms}`, norm = (x: Value) => (o.rmsNorm ? rmsNorm : layerNorm)(x, { name, ...pick(o, 'epsilon', 'noBias') });
      if (o.postNorm) y = norm(residual(y, (x) => dropout(build(x), rate)));
      else y = residual(y, (x) => dropout(build(norm(x)), rate));
    };
    sum((x) => attention(x, heads, { ...self, name: 'self_attn' }));
    const shared = pick(self, 'noBias', 'dropout', 'init', 'outInit', 'kvHeads', 'headSize');
    if (context) sum((x) => attention(x, heads, { ...shared, name: 'multihead_attn', context }));
    sum((x) => feedForward(l, o.hidden, { ...pick(o, 'activation', 'noBias', 'dropout', 'init', 'outInit'), ...o.depth && { biasInit: 0 } }, x));
    return y;
  });
}

/** Some options, without undefined ones. */
function pick<T extends object, K extends keyof T>(options: T, ...names: K[]): Pick<T, K> {
  return Object.fromEntries(names.flatMap((name) => options[name] === undefined ? [] : [[name, options[name]]])) as Pick<T, K>;
}

type Complete = TransformerOptions & Required<Pick<TransformerOptions, 'hidden' | 'dropout' | 'attention'>>;

function complete(l: Layer, o: TransformerOptions): Complete {
  const { depth = 0, hidden = 4 * l.size(-1), dropout: rate = 0 } = o;
  l.require(Number.isInteger(depth) && depth >= 0 && (depth === 0 || o.init === undefined && o.outInit === undefined), `depth is ${depth}: it is not negative, and excludes init and outInit`);
  const normal = (deviation: number): Initial => ({ rule: 'normal', args: [0, deviation] });
  const init = depth ? normal(0.02) : o.init, outInit = depth ? normal(0.02 / Math.sqrt(2 * depth)) : o.outInit ?? init;
  const made: Complete = { ...o, hidden, dropout: rate, ...init !== undefined && { init }, ...outInit !== undefined && { outInit }, attention: {} };
  const own = o.attention ?? {}, out = own.outInit ?? own.init ?? outInit;
  made.attention = { ...pick(made, 'noBias', 'dropout', 'init', 'causal', 'kvHeads', 'rope'), ...own, ...out !== undefined && { outInit: out } };
  return made;
}
