// Families of models, and the names of their parameters.

import { RlxError, shown } from '../../values/errors.js';

/** The names of the layers of a family in Hugging Face's files, with slashes for dots. Those of layers that a family lacks are not given. */
export interface Names {
  embedding: string;
  positions?: string;
  blocks: string;
  final: string;
  head: string;
  /** The norms of a block: before and after attention and MLP. */
  norm1?: string;
  post1?: string;
  norm2?: string;
  post2?: string;
  attention: string;
  mlp: string;
  qkv?: string;
  q?: string;
  k?: string;
  v?: string;
  qNorm?: string;
  kNorm?: string;
  out: string;
  gateUp?: string;
  gate?: string;
  up?: string;
  down: string;
  router?: string;
  experts?: string;
  /** The expert of all tokens, and its gate. */
  shared?: string;
  sharedGate?: string;
}

/** A family of models. */
export interface Family {
  names: Names;
  /** The name of its architecture in GGUF files; without it, it is read from folders alone. */
  gguf?: string;
  /** The name of the norm before the MLP there: `ffn_norm` if not given. */
  norm2InGGUF?: string;
  /** GGUF files have the rows of queries and keys as pairs of neighbours, and safetensors do, too. */
  interleaved?: boolean;
  neighbours?: boolean;
  /** Layers rotate only if they have a window, in models with windows. */
  localRope?: boolean;
}

// The norms of a block: before attention and MLP, or after them.
const before = { norm1: 'input_layernorm', norm2: 'post_attention_layernorm' };
const after = { post1: 'post_attention_layernorm', post2: 'post_feedforward_layernorm' };
/** Llama without norms and gate. */
const bare: Names = {
  embedding: 'model/embed_tokens', blocks: 'model/layers', final: 'model/norm', head: 'lm_head',
  attention: 'self_attn', q: 'q_proj', k: 'k_proj', v: 'v_proj', out: 'o_proj', qNorm: 'q_norm', kNorm: 'k_norm',
  mlp: 'mlp', up: 'up_proj', down: 'down_proj',
};
const gated: Names = { ...bare, gate: 'gate_proj' }, llama: Names = { ...gated, ...before }, olmo: Names = { ...gated, ...after };
const sandwich: Names = { ...llama, ...after, norm2: 'pre_feedforward_layernorm' };
const mixture = { router: 'gate', experts: 'experts' };
const qwenMoE: Names = { ...llama, ...mixture, shared: 'shared_expert', sharedGate: 'shared_expert_gate' };
const gpt2: Names = {
  embedding: 'transformer/wte', positions: 'transformer/wpe', blocks: 'transformer/h', final: 'transformer/ln_f', head: 'lm_head',
  norm1: 'ln_1', norm2: 'ln_2', attention: 'attn', qkv: 'c_attn', out: 'c_proj', mlp: 'mlp', up: 'c_fc', down: 'c_proj',
};

/** Llama without a gate. */
const ungated: Names = { ...bare, ...before };
/** The names within the blocks of GPT-NeoX and Falcon. */
const neoX = { ...before, qkv: 'query_key_value', out: 'dense', mlp: 'mlp', up: 'dense_h_to_4h', down: 'dense_4h_to_h' };
const paired = { interleaved: true, neighbours: true };
/** A family without some layers of another. */
const without = (names: Names, ...lacking: (keyof Names)[]): Names => Object.fromEntries(Object.entries(names).filter(([layer]) => !lacking.includes(layer as keyof Names))) as unknown as Names;

/** The families by their `model_type` in config.json. The first of those with one name in GGUF files is that of the files without experts. */
const families: Readonly<Record<string, Family>> = {
  llama: { names: llama, gguf: 'llama', interleaved: true },
  mistral: { names: llama, gguf: 'llama', interleaved: true },
  mixtral: { names: { ...llama, ...mixture, mlp: 'block_sparse_moe', gate: 'w1', up: 'w3', down: 'w2' }, gguf: 'llama', interleaved: true },
  qwen2: { names: llama, gguf: 'qwen2' },
  qwen3: { names: llama, gguf: 'qwen3' },
  gemma: { names: llama, gguf: 'gemma' },
  gemma2: { names: sandwich, gguf: 'gemma2' },
  gemma3: { names: sandwich, gguf: 'gemma3' },
  phi3: { names: { ...llama, qkv: 'qkv_proj', gateUp: 'gate_up_proj' }, gguf: 'phi3' },
  gpt2: { names: gpt2, gguf: 'gpt2' },
  qwen2_moe: { names: qwenMoE, gguf: 'qwen2moe' },
  qwen3_moe: { names: qwenMoE, gguf: 'qwen3moe' },
  olmo2: { names: olmo, gguf: 'olmo2' },
  olmo3: { names: olmo, gguf: 'olmo2' },
  olmoe: { names: qwenMoE, gguf: 'olmoe' },
  granite: { names: llama, gguf: 'granite', interleaved: true },
  smollm3: { names: llama, gguf: 'smollm3', interleaved: true },
  starcoder2: { names: { ...ungated, up: 'c_fc', down: 'c_proj' }, gguf: 'starcoder2' },
  cohere: { names: llama, gguf: 'command-r', ...paired },
  cohere2: { names: llama, gguf: 'cohere2', ...paired, localRope: true },
  ernie4_5: { names: llama, gguf: 'ernie4_5', ...paired },
  exaone4: { names: olmo, gguf: 'exaone4', localRope: true },
  glm4: { names: { ...llama, post1: 'post_self_attn_layernorm', post2: 'post_mlp_layernorm', gateUp: 'gate_up_proj' }, gguf: 'glm4', ...paired },
  seed_oss: { names: llama, gguf: 'seed_oss', norm2InGGUF: 'post_attention_norm' },
  stablelm: { names: llama, gguf: 'stablelm' },
  arcee: { names: ungated, gguf: 'arcee', interleaved: true },
  falcon: { names: { ...neoX, embedding: 'transformer/word_embeddings', blocks: 'transformer/h', attention: 'self_attention', final: 'transformer/ln_f', head: 'lm_head' }, gguf: 'falcon' },
  gpt_neox: { names: { ...neoX, embedding: 'gpt_neox/embed_in', blocks: 'gpt_neox/layers', attention: 'attention', final: 'gpt_neox/final_layer_norm', head: 'embed_out' }, gguf: 'gptneox' },
  gptj: { names: { ...without(gpt2, 'positions', 'norm2', 'qkv'), q: 'q_proj', k: 'k_proj', v: 'v_proj', out: 'out_proj', up: 'fc_in', down: 'fc_out' }, neighbours: true },
  nemotron: { names: ungated, gguf: 'nemotron' },
  phi: { names: { ...without(ungated, 'norm2'), final: 'model/final_layernorm', out: 'dense', up: 'fc1', down: 'fc2' }, gguf: 'phi2' },
};

/** The names of the families of models that are known. */
export const architectures: readonly string[] = Object.keys(families).sort();

/** A family. Throws an error of kind `unsupported` that lists the known ones. */
export function familyOf(architecture: string): Family {
  const found = Object.hasOwn(families, architecture) ? families[architecture] : undefined;
  if (!found) throw new RlxError('unsupported', `the architecture is ${shown(architecture)}: there are ${architectures.join(', ')}`, { name: shown(architecture) });
  return found;
}

/** The family of an architecture of a GGUF file, which has two for llama. */
export function familyInGGUF(name: string, hasExperts: boolean): string {
  const found = name === 'llama' && hasExperts ? 'mixtral' : Object.keys(families).find((one) => families[one]!.gguf === name);
  if (found) return found;
  const known = [...new Set(Object.values(families).flatMap(({ gguf }) => gguf ?? []))].sort();
  throw new RlxError('unsupported', `general.architecture is ${shown(name)}: there are ${known.join(', ')}`, { name: shown(name) });
}

/**
 * The GGUF tensor that holds a layer's parameter: the name without `.weight` or `.bias`, and the
 * number of the expert.
 */
export interface Stored { name: string; expert?: number }

/** Where the layers of a model are in a GGUF file, by their scope. */
export function inGGUF(c: { readonly architecture: string; readonly layers: number; readonly experts?: number }): Map<string, Stored> {
  const { names: f, norm2InGGUF = 'ffn_norm' } = familyOf(c.architecture), all = new Map<string, Stored>();
  const add = (name: string, ...path: (string | undefined)[]) => { if (path.at(-1)) all.set(path.join('/'), { name }); };
  add('token_embd', f.embedding);
  add('position_embd', f.positions);
  add('output_norm', f.final);
  add('output', f.head);
  for (let i = 0; i < c.layers; i++) {
    const block = `${f.blocks}/${i}`, at = (name: string) => `blk.${i}.${name}`;
    for (const [name, layer] of [['attn_norm', f.norm1], ['post_attention_norm', f.post1], [norm2InGGUF, f.norm2], ['post_ffw_norm', f.post2]] as const) add(at(name), block, layer);
    const heads = [['attn_qkv', f.qkv], ['attn_q', f.q], ['attn_k', f.k], ['attn_v', f.v], ['attn_q_norm', f.qNorm], ['attn_k_norm', f.kNorm], ['attn_output', f.out]] as const;
    for (const [name, layer] of heads) add(at(name), block, f.attention, layer);
    add(at('ffn_gate_inp'), block, f.mlp, f.router);
    add(at('ffn_gate_inp_shexp'), block, f.mlp, f.sharedGate);
    for (const [name, layer] of [['ffn_gate', f.gate], ['ffn_up', f.up], ['ffn_up', f.gateUp], ['ffn_down', f.down]] as const) {
      if (layer === undefined) continue;
      add(at(name), block, f.mlp, layer);
      if (f.shared) add(at(`${name}_shexp`), block, f.mlp, f.shared, layer);
      add(at(`${name}_exps`), block, f.mlp, f.experts, layer);
      for (let e = 0; e < (c.experts ?? 0); e++) all.set([block, f.mlp, f.experts, e, layer].join('/'), { name: at(`${name}_exps`), expert: e });
    }
  }
  return all;
}
