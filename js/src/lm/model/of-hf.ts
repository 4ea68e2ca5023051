// The configuration in a config.json of Hugging Face, as the models' configuration classes of transformers write it.

import { RlxError, shown } from '../../values/errors.js';
import { allBut, badConfig, checkConfig, checkRope, type Config, eachNth, type Rope } from './config.js';
import { familyOf } from './family.js';
import { type Scaling, scaled } from './scaling.js';

type Json = Readonly<Record<string, unknown>>;

/** Reads the fields of an object of JSON; null is as if it were not given. */
class Fields {
  readonly #of: Json;

  constructor(of: unknown) { this.#of = (Object(of) === of ? of : {}) as Json; }

  /** The fields with defaults for those that are not there. */
  or(others?: Json): Fields { return new Fields({ ...others, ...this.#of }); }

  #get(name: string): unknown { return this.#of[name] ?? undefined; }

  number(...names: string[]): number | undefined {
    const name = names.find((one) => this.#get(one) !== undefined), value = name && this.#get(name);
    if (value !== undefined && typeof value !== 'number') throw badConfig(`${name} is no number`, name!);
    return value as number | undefined;
  }

  flag(name: string): boolean | undefined {
    const value = this.#get(name);
    if (value !== undefined && typeof value !== 'boolean') throw badConfig(`${name} is neither true nor false`, name);
    return value;
  }

  text(...names: string[]): string | undefined { return names.map((name) => this.#get(name)).find((value) => typeof value === 'string' && value !== '') as string | undefined; }
  list<T>(name: string): T[] | undefined { return Array.isArray(this.#get(name)) ? this.#get(name) as T[] : undefined; }
  object(name: string): Fields | undefined { return Object(this.#get(name)) === this.#get(name) ? new Fields(this.#get(name)) : undefined; }
}

/** The configuration in the fields of config.json. Errors are of kind `attr`, or `unsupported` for an architecture or an option that is not known. */
export function configOfHF(metadata: ReadonlyMap<string, unknown>): Config {
  const outer = new Fields(Object.fromEntries(metadata)), text = outer.object('text_config') ?? outer; // a model of text and images has its text part there
  const named = text.text('model_type') ?? outer.text('model_type') ?? '', architecture = named === 'gemma3_text' ? 'gemma3' : named, h = text.or(missing[architecture]);
  const { localRope } = familyOf(architecture);
  const heads = h.number('num_attention_heads') ?? 0, width = h.number('hidden_size') ?? 0;
  const begun: Config = {
    architecture, width, heads, hidden: h.number('intermediate_size') ?? 0, layers: h.number('num_hidden_layers') ?? 0,
    kvHeads: h.number('num_key_value_heads') ?? heads, headSize: h.number('head_dim') ?? (heads > 0 ? Math.floor(width / heads) : 0),
    vocabulary: h.number('vocab_size') ?? 0, context: h.number('max_position_embeddings') ?? 0, epsilon: h.number('rms_norm_eps') ?? 1e-6,
    gated: true, tied: h.flag('tie_word_embeddings') ?? false, activation: activation(h),
  };
  const c = ofFamily[architecture]!(begun, h), types = h.list<unknown>('layer_types');
  if (c.window && types?.length) c.windowed = types.map(isSliding);
  if (localRope && c.window && c.windowed) c.unrotated = c.windowed.map((is) => !is);
  for (const [name, must] of [['scale_attn_by_inverse_layer_idx', false], ['add_cross_attention', false], ['use_bidirectional_attention', false], ['scale_attn_weights', true],
    ['new_decoder_architecture', false], ['alibi', false], ['parallel_attn', true], ['qk_layernorm', false], ['use_qk_norm', false]] as const) {
    if ((h.flag(name) ?? must) !== must) throw new RlxError('unsupported', `${architecture} with ${name} ${!must}: it must be ${must}`, { name });
  }
  if (h.number('clip_qkv')) throw new RlxError('unsupported', `${architecture} with clip_qkv`, { name: 'clip_qkv' });
  const step = h.number('decoder_sparse_step') ?? 1, dense = h.list<unknown>('mlp_only_layers')?.length ?? 0;
  if (step !== 1 || dense) throw new RlxError('unsupported', `${architecture} with decoder_sparse_step ${step} and ${dense} mlp_only_layers: all layers must have experts`, { name: 'decoder_sparse_step' });
  return checkConfig(architecture === 'gpt2' ? c : { ...c, rope: rope(h, c) });
}

function activation(h: Fields): Config['activation'] {
  const name = h.text('hidden_activation', 'hidden_act', 'activation_function', 'activation') ?? 'silu';
  const known: Readonly<Record<string, Config['activation']>> = { silu: 'silu', swish: 'silu', gelu: 'gelu', gelu_new: 'gelu_tanh', gelu_pytorch_tanh: 'gelu_tanh', gelu_tanh: 'gelu_tanh', relu: 'relu', relu2: 'relu2' };
  const found = Object.hasOwn(known, name) ? known[name] : undefined;
  if (!found) throw new RlxError('unsupported', `the activation is ${name}: there are silu, gelu, gelu_new, gelu_pytorch_tanh, relu, relu2`, { name });
  return found;
}

function isSliding(type: unknown, i: number): boolean {
  if (type !== 'sliding_attention' && type !== 'full_attention') throw new RlxError('unsupported', `layer_types[${i}] is ${shown(type)}: it must be sliding_attention or full_attention`, { name: 'layer_types' });
  return type === 'sliding_attention';
}

const tied = { tie_word_embeddings: true }, gelu = { activation: 'gelu_tanh' }, relu = { activation: 'relu2' }, fine = { rms_norm_eps: 1e-5 }, wide = { head_dim: 128 };
const half = { partial_rotary_factor: 0.5 }, four = { num_key_value_heads: 4 };
const ofGemma = { ...tied, ...gelu, head_dim: 256 };
/** What transformers takes for fields that a config.json lacks, where that is not what it takes in most families. */
const missing: Readonly<Record<string, Json>> = {
  mistral: { sliding_window: 4096 }, mixtral: { ...fine, rope_theta: 1e6 },
  qwen3: wide,
  gemma: ofGemma, gemma2: { ...ofGemma, ...four, attn_logit_softcapping: 50, final_logit_softcapping: 30 },
  gemma3: { ...ofGemma, ...four, num_attention_heads: 8, vocab_size: 262208, max_position_embeddings: 131072, rope_theta: 1e6, rope_local_base_freq: 10000 },
  gpt2: { ...tied, ...gelu }, gptj: gelu, phi: { ...gelu, ...half }, phi3: fine, olmo2: fine, olmo3: { ...fine, rope_theta: 5e5 }, olmoe: fine,
  smollm3: { ...tied, rope_theta: 2e6 }, starcoder2: { ...tied, ...gelu }, cohere: { ...tied, rope_theta: 5e5 }, cohere2: tied,
  ernie4_5: { ...tied, ...fine, ...wide, rope_theta: 5e5 }, exaone4: { ...fine, sliding_window: 4096 }, glm4: { ...half, ...wide, rms_norm_eps: 1.5625e-7 },
  seed_oss: wide, stablelm: { partial_rotary_factor: 0.25 }, gpt_neox: { activation: 'gelu', rotary_pct: 0.25 },
  falcon: { ...tied, activation: 'gelu' }, nemotron: { ...relu, ...half }, arcee: { ...relu, ...fine },
};

type Rule = (c: Config, h: Fields) => Config;

/** The biases of attention. */
const biased = (bias = false) => ({ qkvBias: bias, outBias: bias });
/** Those and the biases of the MLP. */
const allBiased = (bias = false) => ({ ...biased(bias), mlpBias: bias });

/** The norm that subtracts the mean. */
const byMean = (h: Fields, field = 'layer_norm_eps') => ({ layerNorm: true, epsilon: h.number(field) ?? 1e-5 });

const llama: Rule = (c, h) => ({ ...c, ...biased(h.flag('attention_bias')), mlpBias: h.flag('mlp_bias') ?? false });
const mistral: Rule = (c, h) => {
  const experts = h.number('num_local_experts') ?? 0;
  return { ...c, window: h.number('sliding_window') ?? 0, experts, expertsPerToken: Math.min(h.number('num_experts_per_tok') ?? 2, experts) };
};
const qwen2: Rule = (c, h) => {
  const window = usedWindow(h), from = h.number('max_window_layers') ?? 0;
  return { ...c, qkvBias: true, window, ...window > 0 && { windowed: Array.from({ length: Math.min(c.layers, 4096) }, (_, i) => i >= from) } };
};
const qwen3: Rule = (c, h) => ({ ...qwen2(c, h), ...biased(h.flag('attention_bias')), normQK: true });
/** A mixture of experts on the rule of its attention. */
const mixture = (rule: Rule): Rule => (c, h) => {
  const experts = h.number('num_experts', 'num_local_experts') ?? 0;
  return { ...rule(c, h), experts, expertsPerToken: Math.min(h.number('num_experts_per_tok') ?? 8, experts), hidden: h.number('moe_intermediate_size') ?? 0, rawShares: !h.flag('norm_topk_prob') };
};
const gemma: Rule = (c, h) => ({
  ...c, ...biased(h.flag('attention_bias')), normOffset: 1, embeddingScale: Math.sqrt(Math.max(c.width, 0)),
});
const gemma2: Rule = (c, h) => ({
  ...gemma(c, h), postNorms: true, scoreSoftcap: h.number('attn_logit_softcapping') ?? 0, logitSoftcap: h.number('final_logit_softcapping') ?? 0,
  scale: 1 / Math.sqrt(h.number('query_pre_attn_scalar') ?? 256), window: h.number('sliding_window') ?? 4096, windowed: allBut(c.layers, 2),
});

const olmo2: Rule = (c, h) => ({ ...llama(c, h), noPreNorms: true, postNorms: true, normQKWhole: true });

/** The window, where it is in use. */
const usedWindow = (h: Fields): number => h.flag('use_sliding_window') ? h.number('sliding_window') ?? 0 : 0;

const gpt2: Rule = (c, h) => {
  const width = h.number('n_embd') ?? 0, heads = h.number('n_head') ?? 0;
  return {
    ...c, ...allBiased(true), width, heads, kvHeads: heads, layers: h.number('n_layer') ?? 0, context: h.number('n_positions') ?? 0, hidden: h.number('n_inner') ?? 4 * width,
    headSize: heads > 0 ? Math.floor(width / heads) : 0, gated: false, ...byMean(h, 'layer_norm_epsilon'), fusedQKV: true, inOut: true,
  };
};

const cohere: Rule = (c, h) => ({
  ...c, ...biased(h.flag('attention_bias')), noNormBias: true, parallel: true, ...byMean(h),
  logitScale: h.number('logit_scale') ?? 0.0625,
});

/** The number of layers from one without a window to the next: a number, or as EXAONE has it a text such as "LLLG". */
function period(h: Fields): number {
  const text = h.text('sliding_window_pattern');
  if (text === undefined) return h.number('sliding_window_pattern') ?? 4;
  if (!/^L*G$/.test(text)) throw new RlxError('unsupported', `sliding_window_pattern is ${shown(text)}: it must be a number, or an L for each layer with a window and then a G`, { name: 'sliding_window_pattern' });
  return text.length;
}

/** Differences of a family that config.json does not state. */
const ofFamily: Readonly<Record<string, Rule>> = {
  llama, mistral, mixtral: mistral, qwen2, qwen3, gemma, gemma2,
  gemma3: (c, h) => ({ ...gemma2(c, h), normQK: true, windowed: allBut(c.layers, h.number('sliding_window_pattern') ?? 6) }),
  phi3: (c, h) => ({ ...c, fusedQKV: true, fusedGateUp: true, window: h.number('sliding_window') ?? 0 }),
  gpt2,
  qwen2_moe: (c, h) => ({ ...mixture(qwen2)(c, h), qkvBias: h.flag('qkv_bias') ?? true, sharedHidden: h.number('shared_expert_intermediate_size') ?? 0 }),
  qwen3_moe: mixture(qwen3),
  olmo2,
  olmo3: (c, h) => ({ ...olmo2(c, h), window: h.number('sliding_window') ?? 4096, windowed: allBut(c.layers, 4) }),
  olmoe: (c, h) => ({ ...mixture(llama)(c, h), hidden: c.hidden, normQKWhole: true }),
  granite: (c, h) => ({
    ...llama(c, h), scale: h.number('attention_multiplier') ?? 1, embeddingScale: h.number('embedding_multiplier') ?? 1, residualScale: h.number('residual_multiplier') ?? 1,
    logitScale: 1 / (h.number('logits_scaling') ?? 1),
  }),
  smollm3(c, h) {
    const rotated = h.list<unknown>('no_rope_layers') ?? [];
    return {
      ...llama(c, h), window: usedWindow(h),
      unrotated: rotated.length ? rotated.map((is) => is === 0) : eachNth(c.layers, h.number('no_rope_layer_interval') ?? 4),
    };
  },
  starcoder2: (c, h) => ({
    ...c, ...allBiased(h.flag('use_bias') ?? true), gated: false, ...byMean(h, 'norm_epsilon'), window: h.number('sliding_window') ?? 0,
  }),
  cohere,
  cohere2: (c, h) => ({ ...cohere(c, h), window: h.number('sliding_window') ?? 4096, windowed: allBut(c.layers, period(h)) }),
  ernie4_5: (c, h) => ({ ...c, ...allBiased(h.flag('use_bias')) }),
  exaone4(c, h) {
    const window = h.number('sliding_window');
    return { ...c, noPreNorms: true, postNorms: true, normQK: true, ...window !== undefined && { window, windowed: allBut(c.layers, period(h)) } };
  },
  glm4: (c, h) => ({ ...c, postNorms: true, fusedGateUp: true, qkvBias: h.flag('attention_bias') ?? true }),
  seed_oss: (c, h) => ({
    ...c, qkvBias: h.flag('attention_bias') ?? true, outBias: h.flag('attention_out_bias') ?? false, mlpBias: h.flag('mlp_bias') ?? false,
  }),
  stablelm: (c, h) => ({
    ...c, ...byMean(h), qkvBias: h.flag('use_qkv_bias') ?? false, parallel: h.flag('use_parallel_residual') ?? false,
  }),
  arcee: (c, h) => ({ ...llama(c, h), gated: false }),
  nemotron: (c, h) => ({ ...llama(c, h), normOffset: 1, gated: false, ...byMean(h, 'norm_eps') }),
  phi: (c, h) => ({ ...c, ...allBiased(true), headBias: true, parallel: true, gated: false, ...byMean(h) }),
  gpt_neox(c, h) {
    const parallel = h.flag('use_parallel_residual') ?? true;
    return {
      ...c, ...biased(h.flag('attention_bias') ?? true), mlpBias: true, gated: false, ...byMean(h),
      parallel, parallelNorms: parallel, fusedQKV: true, groupedQKV: true,
    };
  },
  gptj: (c, h) => ({ ...gpt2(c, h), ...biased(), fusedQKV: false, inOut: false, parallel: true, headBias: true }),
  falcon(c, h) { // the blocks of Falcon-7B, whose queries share one key
    const kvHeads = h.flag('multi_query') ?? true ? 1 : c.heads;
    return {
      ...c, ...allBiased(h.flag('bias')), hidden: h.number('ffn_hidden_size') ?? 4 * c.width, context: c.context || 2048,
      parallel: true, gated: false, ...byMean(h, 'layer_norm_epsilon'), fusedQKV: true, kvHeads, groupedQKV: kvHeads > 1,
    };
  },
};

/** The rotation. */
function rope(h: Fields, c: Config): Rope {
  const given = h.object('rope_parameters') ?? h.object('rope_scaling'), s = given?.object('full_attention') ?? given, local = given?.object('sliding_attention');
  const base = s?.number('rope_theta') ?? h.number('rope_theta', 'rotary_emb_base') ?? 10000;
  const localBase = local?.number('rope_theta') ?? h.number('rope_local_base_freq') ?? (c.windowed && c.normQKWhole ? base : undefined);
  const partial = s?.number('partial_rotary_factor') ?? h.number('partial_rotary_factor', 'rotary_pct') ?? 1;
  const r: Rope = {
    base, size: c.architecture === 'gptj' ? h.number('rotary_dim') ?? 64 : partial > 0 && partial <= 1 ? Math.trunc(c.headSize * partial) : 0,
    ...familyOf(c.architecture).neighbours && { interleaved: true }, ...localBase !== undefined && { localBase },
  };
  checkRope(r, c.headSize);
  const original = s?.number('original_max_position_embeddings') ?? h.number('original_max_position_embeddings') ?? c.context;
  return s ? scaled(r, scaling(s), c.context, original) : r;
}

const scaling = (s: Fields): Scaling => ({
  kind: s.text('rope_type', 'type') ?? 'default', factor: s.number('factor'), lowFrequency: s.number('low_freq_factor'), highFrequency: s.number('high_freq_factor'),
  attention: s.number('attention_factor'), betaFast: s.number('beta_fast'), betaSlow: s.number('beta_slow'), truncate: s.flag('truncate'),
  mscale: s.number('mscale'), mscaleAll: s.number('mscale_all_dim'), short: s.list('short_factor'), long: s.list('long_factor'),
});
