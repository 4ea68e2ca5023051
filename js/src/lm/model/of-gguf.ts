// The configuration in the metadata of a GGUF file.

import { RlxError } from '../../values/errors.js';
import type { ModelFile } from '../gguf.js';
import { allBut, badConfig, checkConfig, checkRope, type Config, eachNth, type Rope } from './config.js';
import { familyInGGUF, familyOf, type Family } from './family.js';
import { scaled } from './scaling.js';

/** Reads the keys of a file's architecture. */
class Metadata {
  readonly file: ModelFile;
  readonly prefix: string;

  constructor(file: ModelFile, architecture: string) {
    this.file = file;
    this.prefix = `${architecture}.`;
  }

  #of(key: string): unknown {
    const value = this.file.metadata.get(this.prefix + key);
    return typeof value === 'bigint' ? Number(value) : value;
  }

  /** An integer. A list of one number for each layer has equal ones. */
  int(key: string, otherwise: number): number {
    const value = this.#of(key);
    if (value === undefined) return otherwise;
    const list = typeof value === 'number' ? [value] : Array.from(value as ArrayLike<number | bigint>, Number);
    if (list.some((n) => n !== list[0])) throw new RlxError('unsupported', `${this.prefix}${key} is ${list.slice(0, 8)}: it must be the same for all layers`, { name: key });
    const [n = NaN] = list;
    if (!Number.isInteger(n) || Math.abs(n) >= 2 ** 31) throw badConfig(`${this.prefix}${key} is ${n}, not an integer of 32 bits`, key);
    return n;
  }

  /** A number, or whether something holds. */
  value<T extends number | boolean>(key: string, otherwise: T): T extends number ? number : boolean;
  value(key: string, otherwise: unknown): unknown {
    const value = this.#of(key) ?? otherwise;
    if (typeof value !== typeof otherwise) throw badConfig(`${this.prefix}${key} is no ${typeof otherwise}`, key);
    return value;
  }

  text(key: string): string | undefined {
    const value = this.#of(key);
    return typeof value === 'string' ? value : undefined;
  }

  /** Which layers have the window: those of a list, or all but the last of each period. */
  windowed(layers: number): boolean[] {
    const key = 'attention.sliding_window_pattern', value = this.#of(key);
    return Array.isArray(value) && value.every((is) => typeof is === 'boolean') ? value : allBut(layers, this.int(key, 4));
  }

  has(tensor: string): boolean { return this.file.tensors.has(tensor); }

  /** A vector of n elements that divide the angles; undefined if the file has none. */
  async divisors(name: string, n: number): Promise<number[] | undefined> {
    const info = this.file.tensors.get(name);
    if (!info) return undefined;
    if (info.type !== 'f32' || `${info.shape}` !== `${n}`) throw badConfig(`${name} is ${info.type}[${info.shape}]: it must be f32[${n}]`, name);
    return Array.from(new Float32Array((await this.file.read(name)).slice().buffer));
  }
}

/** The configuration of a GGUF file. Errors are of kind `attr`, or `unsupported` for an unknown architecture, which list those known. */
export async function configOfGGUF(file: ModelFile): Promise<Config> {
  const name = file.metadata.get('general.architecture');
  if (typeof name !== 'string') throw badConfig('general.architecture is no text', 'general.architecture');
  const m = new Metadata(file, name), architecture = familyInGGUF(name, m.int('expert_count', 0) > 0), family = familyOf(architecture);
  const begun = plain(m, architecture, family), c = { ...begun, ...ofFamily[architecture]?.(m, begun), ...family.localRope && windows(m, begun) };
  if (c.layerNorm && c.normQK) throw new RlxError('unsupported', `${architecture} has blk.0.attn_q_norm.weight: queries and keys must have no norms`, { name: 'blk.0.attn_q_norm.weight' });
  return checkConfig(family.names.positions ? c : { ...c, rope: await rope(m, c, family) });
}

/** The layers with the window, which alone rotate. */
function windows(m: Metadata, { layers, window }: Config): Partial<Config> {
  if (!window) return {};
  const windowed = m.windowed(layers);
  return { windowed, unrotated: windowed.map((is) => !is) };
}

/** The configuration in the metadata, without positions. */
function plain(m: Metadata, architecture: string, { names: f }: Family): Config {
  const width = m.int('embedding_length', 0), heads = m.int('attention.head_count', 0), headSize = m.int('attention.key_length', heads > 0 ? Math.floor(width / heads) : 0);
  const valueSize = m.int('attention.value_length', headSize);
  if (valueSize !== headSize) throw new RlxError('unsupported', `${m.prefix}attention.value_length is ${valueSize}: it must be as key_length, ${headSize}`, { name: 'attention.value_length' });
  const [vocabulary = 0, columns] = m.file.tensors.get('token_embd.weight')?.shape ?? [];
  if (columns === undefined) throw badConfig('token_embd.weight is no matrix of the file', 'token_embd.weight');
  return {
    architecture, width, heads, headSize, vocabulary,
    hidden: m.int('feed_forward_length', 0), layers: m.int('block_count', 0), context: m.int('context_length', 0),
    kvHeads: m.int('attention.head_count_kv', heads), epsilon: m.value('attention.layer_norm_rms_epsilon', 1e-6),
    window: m.int('attention.sliding_window', 0), experts: m.int('expert_count', 0), expertsPerToken: m.int('expert_used_count', 0),
    scoreSoftcap: m.value('attn_logit_softcapping', 0), logitSoftcap: m.value('final_logit_softcapping', 0),
    activation: 'silu', gated: true, tied: !m.has('output.weight'),
    qkvBias: m.has('blk.0.attn_q.bias') || m.has('blk.0.attn_qkv.bias'), outBias: m.has('blk.0.attn_output.bias'), mlpBias: m.has('blk.0.ffn_up.bias'), headBias: m.has('output.bias'),
    normQK: m.has('blk.0.attn_q_norm.weight'), fusedQKV: f.qkv !== undefined, fusedGateUp: f.gateUp !== undefined, postNorms: f.post1 !== undefined, noPreNorms: f.norm1 === undefined,
  };
}

type Rule = (m: Metadata, c: Config) => Partial<Config>;

const gemma: Rule = (_, { width }) => ({ activation: 'gelu_tanh', embeddingScale: Math.sqrt(Math.max(width, 0)) });
/** The scale of the largest model of a family, 27B, by its number of layers. */
const largest = ({ layers, heads, width }: Config, of: number) => layers === of && { scale: Math.sqrt(heads / Math.max(width, 1)) };
const ofExperts: Rule = (m) => ({ hidden: m.int('expert_feed_forward_length', 0) });
/** OLMo 2 and OLMoE, and OLMo 3, which has a window. */
const olmo: Rule = (_, { normQK = false, layers, window }) => ({ normQK: false, normQKWhole: normQK, rawShares: true, ...window && { windowed: allBut(layers, 4) } });
const norms: Rule = (m) => ({ layerNorm: true, epsilon: m.value('attention.layer_norm_epsilon', 1e-5) });
const layerNorms: Rule = (m, c) => ({ ...norms(m, c), gated: false, activation: 'gelu_tanh' });
const cohere: Rule = (m, c) => ({ ...norms(m, c), parallel: true, noNormBias: true, logitScale: m.value('logit_scale', 1) });
const squared = { gated: false, activation: 'relu2' } as const;
/** GPT-NeoX and Falcon. */
const neoX = (m: Metadata, c: Config, parallel: boolean, parallelNorms: boolean): Partial<Config> => ({ ...norms(m, c), gated: false, activation: 'gelu', parallel, parallelNorms });

/** Fields missing from the common metadata, by the values of llama.cpp for these architectures. */
const ofFamily: Readonly<Record<string, Rule>> = {
  gemma,
  gemma2: (m, c) => ({ ...gemma(m, c), window: m.int('attention.sliding_window', 4096), windowed: allBut(c.layers, 2), ...largest(c, 46) }),
  gemma3: (m, c) => ({ ...gemma(m, c), windowed: allBut(c.layers, 6), ...largest(c, 62) }),
  gpt2: layerNorms, starcoder2: layerNorms, qwen3_moe: ofExperts,
  qwen2_moe: (m, c) => ({ ...ofExperts(m, c), sharedHidden: m.int('expert_shared_feed_forward_length', 0), rawShares: true }),
  olmo2: olmo, olmoe: olmo,
  granite: (m) => ({
    embeddingScale: m.value('embedding_scale', 1), residualScale: m.value('residual_scale', 1), scale: m.value('attention.scale', 0), logitScale: 1 / m.value('logit_scale', 1),
  }),
  smollm3: (_, { layers }) => ({ unrotated: eachNth(layers, 4) }),
  cohere, cohere2: cohere, arcee: () => squared,
  stablelm: (m, c) => ({ ...norms(m, c), parallel: !m.has('blk.0.ffn_norm.weight') }),
  nemotron: (m, c) => ({ ...norms(m, c), ...squared }),
  phi: (m, c) => ({ ...layerNorms(m, c), parallel: true }),
  falcon: (m, c) => neoX(m, c, true, false),
  gpt_neox(m, c) {
    const parallel = m.value('use_parallel_residual', true);
    return neoX(m, c, parallel, parallel);
  },
};

/** The rotation. Angles are divided by tensors of the file or by the factor in its metadata. */
async function rope(m: Metadata, c: Config, family: Family): Promise<Rope> {
  const gemma3 = c.architecture === 'gemma3', base = m.value('rope.freq_base', gemma3 ? 1e6 : 10000), original = m.int('rope.scaling.original_context_length', c.context);
  const r: Rope = {
    base, size: m.int('rope.dimension_count', c.headSize),
    ...family.interleaved && { interleaved: true }, ...(gemma3 || c.windowed && c.normQKWhole) && { localBase: m.value('rope.freq_base_swa', gemma3 ? 10000 : base) },
  };
  if (m.file.metadata.has(`${m.prefix}rope.dimension_sections`)) throw new RlxError('unsupported', `${m.prefix}rope.dimension_sections: a token must have one position`, { name: 'rope.dimension_sections' });
  checkRope(r, c.headSize);
  const all = await m.divisors('rope_freqs.weight', r.size / 2), short = await m.divisors('rope_factors_short.weight', r.size / 2);
  if (all) r.divisors = all;
  if (short) {
    const long = await m.divisors('rope_factors_long.weight', r.size / 2);
    Object.assign(r, { divisors: short, ...long && { longDivisors: long }, original, amplitude: m.value('rope.scaling.attn_factor', 1) });
  }
  const factor = m.value('rope.scaling.factor', m.value('rope.scale_linear', 1)), kind = m.text('rope.scaling.type') ?? 'linear';
  return kind === 'none' || kind === 'longrope' || factor === 1 ? r : scaled(r, { kind, factor }, c.context, original);
}
