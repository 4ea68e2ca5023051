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
  norm1: string;
  post1?: string;
  norm2: string;
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
}

/** A family of models. */
export interface Family {
  names: Names;
  /** The name of its architecture in GGUF files. */
  gguf: string;
  /** GGUF files have the rows of queries and keys as pairs of neighbours. */
  interleaved?: boolean;
}

const llama: Names = {
  embedding: 'model/embed_tokens', blocks: 'model/layers', final: 'model/norm', head: 'lm_head',
  norm1: 'input_layernorm', norm2: 'post_attention_layernorm',
  attention: 'self_attn', q: 'q_proj', k: 'k_proj', v: 'v_proj', out: 'o_proj', qNorm: 'q_norm', kNorm: 'k_norm',
  mlp: 'mlp', gate: 'gate_proj', up: 'up_proj', down: 'down_proj',
};
const mixtral: Names = { ...llama, mlp: 'block_sparse_moe', router: 'gate', experts: 'experts', gate: 'w1', up: 'w3', down: 'w2' };
/** Blocks with norms before and after attention and MLP. */
const sandwich: Names = { ...llama, post1: 'post_attention_layernorm', norm2: 'pre_feedforward_layernorm', post2: 'post_feedforward_layernorm' };
const gpt2: Names = {
  embedding: 'transformer/wte', positions: 'transformer/wpe', blocks: 'transformer/h', final: 'transformer/ln_f', head: 'lm_head',
  norm1: 'ln_1', norm2: 'ln_2', attention: 'attn', qkv: 'c_attn', out: 'c_proj', mlp: 'mlp', up: 'c_fc', down: 'c_proj',
};

/** The families by their `model_type` in config.json. */
const families: Readonly<Record<string, Family>> = {
  llama: { names: llama, gguf: 'llama', interleaved: true },
  mistral: { names: llama, gguf: 'llama', interleaved: true },
  mixtral: { names: mixtral, gguf: 'llama', interleaved: true },
  qwen2: { names: llama, gguf: 'qwen2' },
  qwen3: { names: llama, gguf: 'qwen3' },
  gemma: { names: llama, gguf: 'gemma' },
  gemma2: { names: sandwich, gguf: 'gemma2' },
  gemma3: { names: sandwich, gguf: 'gemma3' },
  phi3: { names: { ...llama, qkv: 'qkv_proj', gateUp: 'gate_up_proj' }, gguf: 'phi3' },
  gpt2: { names: gpt2, gguf: 'gpt2' },
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
  const architecture = name === 'llama' && hasExperts ? 'mixtral' : name;
  if (Object.hasOwn(families, architecture) && families[architecture]!.gguf === name) return architecture;
  const known = [...new Set(Object.values(families).map(({ gguf }) => gguf))].sort();
  throw new RlxError('unsupported', `general.architecture is ${shown(name)}: there are ${known.join(', ')}`, { name: shown(name) });
}

/**
 * The GGUF tensor that holds a layer's parameter: the name without `.weight` or `.bias`, and the
 * number of the expert.
 */
export interface Stored { name: string; expert?: number }

/** Where the layers of a model are in a GGUF file, by their scope. */
export function inGGUF(c: { readonly architecture: string; readonly layers: number; readonly experts?: number }): Map<string, Stored> {
  const { names: f } = familyOf(c.architecture), all = new Map<string, Stored>();
  const add = (name: string, ...path: (string | undefined)[]) => { if (path.at(-1)) all.set(path.join('/'), { name }); };
  add('token_embd', f.embedding);
  add('position_embd', f.positions);
  add('output_norm', f.final);
  add('output', f.head);
  for (let i = 0; i < c.layers; i++) {
    const block = `${f.blocks}/${i}`, at = (name: string) => `blk.${i}.${name}`;
    for (const [name, layer] of [['attn_norm', f.norm1], ['post_attention_norm', f.post1], ['ffn_norm', f.norm2], ['post_ffw_norm', f.post2]] as const) add(at(name), block, layer);
    const heads = [['attn_qkv', f.qkv], ['attn_q', f.q], ['attn_k', f.k], ['attn_v', f.v], ['attn_q_norm', f.qNorm], ['attn_k_norm', f.kNorm], ['attn_output', f.out]] as const;
    for (const [name, layer] of heads) add(at(name), block, f.attention, layer);
    add(at('ffn_gate_inp'), block, f.mlp, f.router);
    for (const [name, layer] of [['ffn_gate', f.gate], ['ffn_up', f.up], ['ffn_up', f.gateUp], ['ffn_down', f.down]] as const) {
      if (layer === undefined) continue;
      add(at(name), block, f.mlp, layer);
      for (let e = 0; e < (c.experts ?? 0); e++) all.set([block, f.mlp, f.experts, e, layer].join('/'), { name: at(`${name}_exps`), expert: e });
    }
  }
  return all;
}
