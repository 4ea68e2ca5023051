// The configuration of a decoder: sizes, norms, positions, and differences between families. The
// names are those of the Go package ir/lm.

import type { RopeOptions } from '../../nn/position.js';
import { need, RlxError } from '../../values/errors.js';
import { familyOf } from './family.js';

/** The functions in the MLP of a decoder. */
export const activations = ['gelu', 'gelu_tanh', 'relu', 'relu2', 'silu'] as const;

/** Describes a decoder: what {@link configOf} reads from a file. */
export interface Config {
  /** The family: one of `architectures`. It chooses the names of the parameters. */
  architecture: string;
  /** The number of features of a token, and that within an MLP or an expert. */
  width: number;
  hidden: number;
  /** The number of blocks. */
  layers: number;
  /** The number of heads of queries, that of keys and values, which divides it, and the number of features of each. */
  heads: number;
  kvHeads: number;
  headSize: number;
  /** The number of tokens, and that of positions the model was made for. */
  vocabulary: number;
  context: number;

  /** Normalises by mean and variance, with weight and bias, not by the root mean square. */
  layerNorm?: boolean;
  /** Is added to variances. */
  epsilon: number;
  /** Is added to the weights of norms as a file has them: 1 in Gemma's safetensors. */
  normOffset?: number;
  /** Normalises also the results of attention and MLP before they are added. */
  postNorms?: boolean;
  /** Has no bias in the norms of `layerNorm`. */
  noNormBias?: boolean;
  /** Computes the MLP from the same normalised input as attention, or with `parallelNorms` from one with its own norm, and adds both results. */
  parallel?: boolean;
  parallelNorms?: boolean;
  /** Does not normalise the inputs of attention and MLP. */
  noPreNorms?: boolean;
  /** Normalise each head of queries and keys before it is rotated, or all heads of a token together. */
  normQK?: boolean;
  normQKWhole?: boolean;

  /** Rotates queries and keys; without it positions are learned. */
  rope?: Rope;
  /** The layers that do not rotate. */
  unrotated?: readonly boolean[];
  /** Hides keys that are `window` positions back or more, in the layers that `windowed` names, or in all without it. */
  window?: number;
  windowed?: readonly boolean[];
  /** Multiplies the scores of attention. 1/√headSize if not given. */
  scale?: number;
  /** Replace scores and logits s by c·tanh(s/c). */
  scoreSoftcap?: number;
  logitSoftcap?: number;

  /** Add biases to the projections of attention, to its result, in the MLP, and to the logits. */
  qkvBias?: boolean;
  outBias?: boolean;
  mlpBias?: boolean;
  headBias?: boolean;
  /**
   * Queries, keys and values have one weight, in this order, and so have gate and value of the MLP. `groupedQKV` has them in this order for each
   * head of keys, not for all together.
   */
  fusedQKV?: boolean;
  fusedGateUp?: boolean;
  groupedQKV?: boolean;
  /** Weights of linear layers are [in, out] in the file, not [out, in]: those of GPT-2 in safetensors. */
  inOut?: boolean;
  /** The function in the MLP. `gated` multiplies it with another projection. */
  activation: (typeof activations)[number];
  gated?: boolean;
  /** The number of experts of each layer, and how many of them a token uses. One MLP if not given. */
  experts?: number;
  expertsPerToken?: number;
  /** Multiplies the results of the chosen experts by their shares of all experts, not of the chosen ones. */
  rawShares?: boolean;
  /** The number of features within an expert that every token uses too, times the sigmoid of a projection. */
  sharedHidden?: number;

  /** Multiply the results of attention and MLP before they are added, and the logits. 1 if not given. */
  residualScale?: number;
  logitScale?: number;
  /** Multiplies the embeddings. 1 if not given. */
  embeddingScale?: number;
  /** Uses the table of embeddings as the weight of the logits. */
  tied?: boolean;
}

/** Rotary positions: pair i of a head is rotated by position·base^(−2i/size)/divisors[i]. */
export interface Rope {
  /**
   * The base of the angles. `localBase` is the base of layers with a window, whose angles are not
   * divided: `base` if not given.
   */
  base: number;
  localBase?: number;
  /** How many features of a head are rotated, the first ones: even. */
  size: number;
  /** Pairs neighbours: GGUF files of Llama have the rows of queries and keys in this order. */
  interleaved?: boolean;
  /** Extend the context: the angle of each pair is divided by its own, size / 2 of them. */
  divisors?: readonly number[];
  /** Are used instead of `divisors` by a program of more positions than `original`: see `DecoderOptions`. */
  longDivisors?: readonly number[];
  original?: number;
  /** Multiplies rotated features. 1 if not given. */
  amplitude?: number;
}

/** The error for a field of a model's description that is malformed or out of range. */
export const badConfig = (message: string, name: string): RlxError => new RlxError('attr', `model configuration: ${message}`, { name });

// Upper bounds of a configuration, against files that ask for absurd amounts of memory.
const bounds: Partial<Record<keyof Config, readonly [low: number, high: number]>> = {
  width: [1, 2 ** 22], hidden: [1, 2 ** 22], layers: [1, 4096], heads: [1, 2 ** 14], kvHeads: [1, 2 ** 14], headSize: [1, 2 ** 22],
  vocabulary: [1, 2 ** 28], context: [1, 2 ** 28], window: [0, 2 ** 31 - 1], experts: [0, 1024], expertsPerToken: [0, 1024],
  sharedHidden: [0, 2 ** 22],
};

const plainNumbers = ['epsilon', 'normOffset', 'scale', 'scoreSoftcap', 'logitSoftcap', 'embeddingScale', 'residualScale', 'logitScale'] as const;

/** Returns a checked configuration, or throws an error of kind `attr`, or `unsupported` for an unknown architecture. */
export function checkConfig(c: Config): Config {
  need(Object(c) === c, 'attr', 'a configuration', 'an object', c);
  familyOf(c.architecture);
  for (const [name, [low, high]] of Object.entries(bounds)) {
    const n = (c as unknown as Record<string, number | undefined>)[name] ?? 0;
    if (!Number.isInteger(n) || n < low || n > high) throw badConfig(`${name} is ${n}, not a whole number from ${low} to ${high}`, name);
  }
  if (c.heads % c.kvHeads) throw badConfig(`kvHeads is ${c.kvHeads}, which does not divide heads, ${c.heads}`, 'kvHeads');
  if (c.heads * c.headSize > 2 ** 22) throw badConfig(`heads is ${c.heads} and headSize ${c.headSize}: their product is at most ${2 ** 22}`, 'headSize');
  const { experts = 0, expertsPerToken = 0 } = c;
  if (expertsPerToken > experts || experts > 0 && expertsPerToken === 0) throw badConfig(`expertsPerToken is ${expertsPerToken}, of ${experts} experts`, 'expertsPerToken');
  if (c.sharedHidden && !experts) throw badConfig(`sharedHidden is ${c.sharedHidden}, without experts`, 'sharedHidden');
  if (c.parallel && (c.noPreNorms || c.postNorms)) throw badConfig('parallel is true with noPreNorms or postNorms', 'parallel');
  if (c.parallelNorms && !c.parallel) throw badConfig('parallelNorms is true without parallel', 'parallelNorms');
  if (c.groupedQKV && (!c.fusedQKV || c.normQKWhole)) throw badConfig('groupedQKV is true without fusedQKV, or with normQKWhole', 'groupedQKV');
  if (c.noPreNorms && !c.postNorms) throw badConfig('noPreNorms is true without postNorms', 'noPreNorms');
  if (c.normQK && c.normQKWhole) throw badConfig('normQK and normQKWhole are true', 'normQK');
  for (const name of ['windowed', 'unrotated'] as const) {
    const n = c[name]?.length ?? c.layers;
    if (n !== c.layers) throw badConfig(`${name} has ${n} layers, not ${c.layers}`, name);
  }
  if (!activations.includes(c.activation)) throw badConfig(`activation is ${c.activation}: there are ${activations.join(', ')}`, 'activation');
  for (const name of plainNumbers) {
    const x = c[name] ?? 0;
    if (!(x >= 0 && x < Infinity)) throw badConfig(`${name} is ${x}: it must be finite and not negative`, name);
  }
  if (c.rope) checkRope(c.rope, c.headSize);
  return c;
}

/** Throws unless a rotation fits heads of a size. */
export function checkRope(r: Rope, headSize: number): void {
  const { base, localBase = base, size, amplitude = 1 } = r, positive = (x: number) => x > 0 && x < Infinity;
  if (!Number.isInteger(size) || size < 2 || size % 2 || size > headSize) throw badConfig(`rope.size is ${size}: it must be even and from 2 to ${headSize}`, 'rope');
  if (![base, localBase, amplitude].every(positive)) throw badConfig(`rope has base ${base}, localBase ${localBase} and amplitude ${amplitude}: they must be finite and positive`, 'rope');
  for (const list of [r.divisors, r.longDivisors]) {
    if (list && (list.length !== size / 2 || !list.every(positive))) throw badConfig(`rope has ${list.length} divisors: they must be finite, positive, and ${size / 2} of them`, 'rope');
  }
}

/** Whether a layer has the window. */
export const isWindowed = (c: Config, layer: number): boolean => (c.window ?? 0) > 0 && (c.windowed?.[layer] ?? true);

/** The angle of a position of pair i without scaling. */
export const angle = (base: number, i: number, size: number): number => base ** (-2 * i / size);

/** The rotation of a layer in a program with the given number of positions; undefined for none. */
export function ropeOf(c: Config, layer: number, positions: number): RopeOptions | undefined {
  const { rope: r } = c;
  if (!r || c.unrotated?.[layer]) return undefined;
  const plain = { base: r.base, size: r.size, ...r.interleaved && { interleaved: true } };
  if (isWindowed(c, layer) && r.localBase !== undefined) return { ...plain, base: r.localBase };
  const divisors = r.longDivisors && positions > (r.original ?? 0) ? r.longDivisors : r.divisors;
  return {
    ...plain,
    ...r.amplitude !== undefined && { amplitude: r.amplitude },
    ...divisors && { frequencies: divisors.map((d, i) => angle(r.base, i, r.size) / d) },
  };
}

/** Which layers have a window: all but each nth. */
export const allBut = (layers: number, nth: number): boolean[] => Array.from({ length: Math.min(Math.max(layers, 0), 4096) }, (_, i) => (i + 1) % nth !== 0);

/** The layers that {@link allBut} does not return. */
export const eachNth = (layers: number, nth: number): boolean[] => allBut(layers, nth).map((is) => !is);
