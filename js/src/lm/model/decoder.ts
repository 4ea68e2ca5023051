// The decoder of a language model, one definition for all families, as the Go package ir/lm has it.

import type { Value } from '../../graph/builder.js';
import type { Parts } from '../../graph/graph.js';
import { part } from '../../graph/part.js';
import { attend } from '../../nn/attention.js';
import { residual } from '../../nn/context.js';
import { normal } from '../../nn/initial.js';
import { embedding, linear, type LinearOptions } from '../../nn/linear.js';
import { chosenExperts, expertsInQueues, groupedLinear } from '../../nn/moe.js';
import { layerNorm, rmsNorm } from '../../nn/norm.js';
import { positionalEmbedding } from '../../nn/position.js';
import { recomputed } from '../../nn/stack.js';
import { storageOf } from '../../nn/storage.js';
import { linearCrossEntropy, type LinearCrossEntropyOptions, softcap } from '../../nn/vocabulary.js';
import { checkOptions, RlxError } from '../../values/errors.js';
import { checkConfig, type Config, isWindowed, ropeOf } from './config.js';
import { familyOf, type Names } from './family.js';

/** Options of {@link decoder}. */
export interface DecoderOptions {
  /** Returns the logits of the last position alone, [..., 1, vocabulary]. */
  last?: boolean;
  /** i32[sequences]: returns the logits of one position of each sequence, [sequences, 1, vocabulary], for tokens that are padded at the end. */
  at?: Value;
  /**
   * The number of positions that the program has at most, such as the length of `nn.cache`; by default that of the model. Where it is at most
   * `rope.original`, the angles are divided by `rope.divisors`, not `rope.longDivisors`.
   */
  context?: number;
  /** Has the backward pass recompute each block from its input. It excludes a cache. */
  checkpoint?: boolean;
}

/**
 * The logits of the token after each of `tokens`, integers [..., time]: f32[..., time,
 * vocabulary]. After `nn.cache` it continues the sequence of earlier runs. `nn.stored` sets the
 * storage of the weights. Errors are those of the configuration and of the layers.
 */
export function decoder(tokens: Value, config: Config, options?: DecoderOptions): Value {
  checkOptions('lm.decoder', options, 'last at context checkpoint');
  return atOnce(decoderInParts(tokens, config, options ?? {}));
}

/** {@link decoder} in parts: the embedding, each block, and the logits. @internal */
export const decoderInParts = (tokens: Value, config: Config, options: DecoderOptions = {}, within?: Within): Parts<Value> =>
  inParts(tokens, config, options, within, (d, x) => d.scores(x, options));

/** Builds a part of a model, in the contexts that it opens. */
type Within = (build: () => Value) => Value;

function* inParts(tokens: Value, config: Config, { context, checkpoint }: { context?: number | undefined; checkpoint?: boolean | undefined }, within: Within = (build) => build(), head: (d: Decoder, x: Value) => Value): Parts<Value> {
  const d = new Decoder(config, context);
  let x = within(() => d.embed(tokens));
  for (let layer = 0; layer < config.layers; layer++) {
    yield;
    const block = (y: Value) => d.block(y, layer);
    x = within(() => tokens.builder.scope(`${d.names.blocks}/${layer}`, () => checkpoint ? recomputed(x, block) : block(x)));
  }
  yield;
  return within(() => head(d, x));
}

function atOnce(parts: Parts<Value>): Value {
  for (;;) {
    const { done, value } = parts.next();
    if (done) return value;
  }
}

/** Options of {@link loss}. */
export interface LossOptions extends Pick<DecoderOptions, 'context' | 'checkpoint'>, Pick<LinearCrossEntropyOptions, 'ignored' | 'reduction' | 'rows'> {}

/**
 * The cross entropy of `next`, integers [..., time], for the tokens before them: that of the logits of {@link decoder}, of which only those
 * of some tokens exist at a time (`nn.linearCrossEntropy`).
 */
export function loss(tokens: Value, next: Value, config: Config, options?: LossOptions): Value {
  checkOptions('lm.loss', options, 'context checkpoint ignored reduction rows');
  return atOnce(lossInParts(tokens, next, config, options ?? {}));
}

/** {@link loss} in parts, as {@link decoderInParts}. @internal */
export function lossInParts(tokens: Value, next: Value, config: Config, { context, checkpoint, ...rest }: LossOptions = {}, within?: Within): Parts<Value> {
  return inParts(tokens, config, { context, checkpoint }, within, (d, x) =>
    linearCrossEntropy(d.normed(x), next, d.c.vocabulary, { ...d.headOptions, ...d.c.logitSoftcap && { softcap: d.c.logitSoftcap }, ...rest }));
}

/** Builds a decoder by the names of a family. */
class Decoder {
  readonly c: Config;
  readonly names: Names;

  constructor(c: Config, private readonly positions?: number) {
    this.c = checkConfig(c);
    this.names = familyOf(c.architecture).names;
  }

  /** The options of the layer of the logits. */
  get headOptions(): LinearOptions {
    const { c, names: n } = this;
    return { name: n.head, noBias: !c.headBias, biasInit: 0, init: normal(0, 0.02), ...c.tied && { tied: `${n.embedding}/weight` } };
  }

  embed(tokens: Value): Value {
    const { c, names } = this, x = scaled(embedding(tokens, c.vocabulary, c.width, { name: names.embedding, init: normal(0, 0.02) }), c.embeddingScale);
    return c.rope ? x : positionalEmbedding(x, c.context, { name: names.positions! });
  }

  /** x plus attention, and that plus the MLP; with `parallel` x plus both. */
  block(x: Value, layer: number): Value {
    const { names: n, c } = this, attend = (y: Value) => y.builder.scope(n.attention, () => this.#attend(layer, y));
    const feed = (y: Value) => y.builder.scope(n.mlp, () => c.experts ? this.#mixture(y) : this.#feed(y));
    if (c.parallel) {
      return this.#sum(x, n.norm1, undefined, (y) => {
        const z = c.parallelNorms ? this.norm(n.norm2!, x) : y;
        return attend(y).add(feed(z));
      });
    }
    return this.#sum(this.#sum(x, n.norm1, n.post1, attend), n.norm2, n.post2, feed);
  }

  /** x plus f of its norm, if there are norms before, which is normalised in turn if there are norms after. */
  #sum(x: Value, before: string | undefined, after: string | undefined, f: (x: Value) => Value): Value {
    const { c } = this;
    return residual(x, (y) => {
      const z = f(c.noPreNorms ? y : this.norm(before!, y));
      return scaled(c.postNorms ? this.norm(after!, z) : z, c.residualScale);
    });
  }

  norm(name: string, x: Value): Value {
    const { layerNorm: byMean, epsilon, noNormBias: noBias = false } = this.c;
    return byMean ? layerNorm(x, { name, epsilon, noBias }) : rmsNorm(x, { name, epsilon });
  }

  #linear(name: string, x: Value, out: number, bias = false): Value {
    return linear(x, out, { name, noBias: !bias, init: normal(0, 0.02), biasInit: 0 });
  }

  /** Causal attention with its projections. */
  #attend(layer: number, x: Value): Value {
    const { c, names: n } = this, rope = ropeOf(c, layer, this.positions ?? c.context);
    let [q, k, v] = this.#project(x);
    if (c.normQK) [q, k] = [this.norm(n.qNorm!, q), this.norm(n.kNorm!, k)];
    const y = attend(q, k, v, {
      name: '.', causal: true, ...rope && { rope }, ...c.scale && { scale: c.scale }, ...c.scoreSoftcap && { softcap: c.scoreSoftcap }, ...isWindowed(c, layer) && { window: c.window! },
    });
    return this.#linear(n.out, y, c.width, c.outBias);
  }

  /** Queries, keys and values, [..., heads, time, size]. */
  #project(x: Value): [q: Value, k: Value, v: Value] {
    const { c, names: n } = this, inner = c.heads * c.headSize, kv = c.kvHeads * c.headSize;
    if (c.groupedQKV) return this.#grouped(this.#linear(n.qkv!, x, inner + 2 * kv, c.qkvBias));
    const heads = (y: Value, count: number) => y.reshape([...y.shape.slice(0, -1), count, c.headSize]).swapAxes({ axis1: -3, axis2: -2 });
    let [q, k, v] = c.fusedQKV
      ? this.#linear(n.qkv!, x, inner + 2 * kv, c.qkvBias).split({ axis: -1, sizes: [inner, kv, kv] }) as [Value, Value, Value]
      : [this.#linear(n.q!, x, inner, c.qkvBias), this.#linear(n.k!, x, kv, c.qkvBias), this.#linear(n.v!, x, kv, c.qkvBias)];
    if (c.normQKWhole) [q, k] = [this.norm(n.qNorm!, q), this.norm(n.kNorm!, k)];
    return [heads(q, c.heads), heads(k, c.kvHeads), heads(v, c.kvHeads)];
  }

  /** Queries, keys and values of projections that have, for each head of keys, its queries, the key and the value. */
  #grouped(all: Value): [q: Value, k: Value, v: Value] {
    const { c: { heads, kvHeads, headSize } } = this, group = heads / kvHeads, before = all.shape.slice(0, -1);
    const parts = all.reshape([...before, kvHeads, group + 2, headSize]).split({ axis: -2, sizes: [group, 1, 1] });
    return parts.map((part, i) => part.reshape([...before, i ? kvHeads : heads, headSize]).swapAxes({ axis1: -3, axis2: -2 })) as [Value, Value, Value];
  }

  /** The MLP, or an expert, with a number of features within. Its parameters are in the open scope. `times` multiplies with a matrix. */
  #feed(x: Value, hidden = this.c.hidden, times = (name: string, y: Value, out: number) => this.#linear(name, y, out, this.c.mlpBias)): Value {
    const { c, names: n } = this;
    let gate: Value, up: Value | undefined;
    if (c.fusedGateUp) [gate, up] = times(n.gateUp!, x, 2 * hidden).split({ axis: -1, sizes: [hidden, hidden] }) as [Value, Value];
    else if (c.gated) [gate, up] = [times(n.gate!, x, hidden), times(n.up!, x, hidden)];
    else gate = times(n.up!, x, hidden);
    const active = activated(gate, c.activation);
    return times(n.down, up ? active.mul(up) : active, c.width);
  }

  /**
   * The sum of the results of the best experts of each token by the softmax of the router's scores, normalised to sum to 1 (Jiang
   * et al., Mixtral of Experts) unless `rawShares`, and of the expert of all tokens. Where the weights of all experts of a layer are packed, in one
   * parameter for each matrix, each token reads those of its experts alone.
   */
  #mixture(x: Value): Value {
    const { c, names: n } = this, tokens = x.shape.slice(0, -1).reduce<number>((product, d) => product * (d as number), 1);
    if (Number.isNaN(tokens)) throw new RlxError('symbol', `lm.decoder: x is [${x.shape}]: a model with experts must have a constant number of tokens`, { op: 'lm.decoder' });
    const { builder: b } = x, rows = x.reshape([tokens, c.width]), scores = this.#linear(n.router!, rows, c.experts!), route = { k: c.expertsPerToken!, normalize: !c.rawShares };
    const y = b.scope(n.experts!, () => {
      if (c.mlpBias || ![n.gate, n.up, n.down].every((name) => storageOf(b, `${name}/weight`).format)) return expertsInQueues(rows, scores, route, (y) => this.#feed(y));
      const [shares, chosen] = scores.moeRoute(route);
      return chosenExperts(rows, shares, chosen, (z, groups) => this.#feed(z, c.hidden, (name, v, out) => groupedLinear(v, groups, c.experts!, out, { name })));
    });
    return (c.sharedHidden ? y.add(this.#shared(rows, c.sharedHidden)) : y).reshape(x.shape);
  }

  /** The result of the expert of all tokens, times its gate. */
  #shared(x: Value, hidden: number): Value {
    const { names: n } = this, gate = this.#linear(n.sharedGate!, x, 1).sigmoid();
    return gate.mul(x.builder.scope(n.shared!, () => this.#feed(x, hidden)));
  }

  /** The scores of the vocabulary for the result of the blocks, at all positions or at those of the options. */
  scores(x: Value, { last, at }: DecoderOptions = {}): Value {
    if (at) {
      const { shape } = x, [sequences, , width] = shape as [number, number, number], given = `${at.dtype}[${at.shape}]`;
      if (shape.length !== 3 || given !== `i32[${sequences}]`) {
        throw new RlxError('shape', `lm.decoder: tokens are [${shape.slice(0, -1)}] and at ${given}: they must be [sequences, time] and i32[sequences]`, { op: 'lm.decoder' });
      }
      x = x.takeAlongAxis(at.reshape([sequences, 1, 1]).broadcastInDim({ shape: [sequences, 1, width], axes: [0, 1, 2] }), 1, 'clip');
    } else if (last) {
      x = part(x, -2, (x.shape.at(-2) as number) - 1, 1);
    }
    const { c } = this;
    return softcap(linear(this.normed(x), c.vocabulary, this.headOptions), c.logitSoftcap || 0);
  }

  /** The last norm times `logitScale`: what the table of the logits is multiplied with. */
  normed(x: Value): Value { return scaled(this.norm(this.names.final, x), this.c.logitScale); }
}

/** x times a scale, 1 if not given. */
function scaled(x: Value, scale: number | undefined): Value { return scale && scale !== 1 ? x.mul(scale) : x; }

function activated(x: Value, activation: Config['activation']): Value {
  switch (activation) {
    case 'gelu': return x.gelu();
    case 'gelu_tanh': return x.geluTanh();
    case 'relu': return x.relu();
    case 'relu2': return x.relu().square();
    case 'silu': return x.silu();
  }
}

