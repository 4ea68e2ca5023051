// A small language model that has learned nothing, for tests of the page of chat.

import { f32, packQ8, u32, writeGGUF } from '../../../js/test/gguf.mjs';

/**
 * A model of one layer with random weights, whose template is of a conversation: its tokens are the printable characters of
 * ASCII.
 */
export function randomModel() {
  let state = 1;
  const random = () => (state = Math.imul(state, 1103515245) + 12345 >>> 0) / 2 ** 32 - 0.5;
  const matrix = (rows, columns) => ({ shape: [rows, columns], type: 'q8_0', data: packQ8(Float32Array.from({ length: rows * columns }, random)) });
  const ones = (n) => ({ shape: [n], type: 'f32', data: new Uint8Array(new Float32Array(n).fill(1).buffer) });
  const characters = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i)), tokens = [...characters, 'Ġ', 'Ċ', '<|end|>', '<|turn|>'], width = 32;
  return writeGGUF({
    'general.architecture': 'llama', 'general.name': 'Random',
    'llama.block_count': u32(1), 'llama.context_length': u32(512), 'llama.embedding_length': u32(width), 'llama.feed_forward_length': u32(64),
    'llama.attention.head_count': u32(2), 'llama.attention.head_count_kv': u32(1), 'llama.attention.layer_norm_rms_epsilon': f32(1e-5),
    'tokenizer.ggml.model': 'gpt2', 'tokenizer.ggml.pre': 'gpt-2', 'tokenizer.ggml.tokens': tokens,
    'tokenizer.ggml.token_type': tokens.map((token) => token.startsWith('<|') ? 3 : 1), 'tokenizer.ggml.eos_token_id': u32(96),
    'tokenizer.chat_template': '{% for m in messages %}<|turn|>{{ m.role }}\n{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}',
  }, {
    'token_embd.weight': matrix(tokens.length, width), 'output_norm.weight': ones(width), 'blk.0.attn_norm.weight': ones(width), 'blk.0.ffn_norm.weight': ones(width),
    'blk.0.attn_q.weight': matrix(32, width), 'blk.0.attn_k.weight': matrix(16, width), 'blk.0.attn_v.weight': matrix(16, width), 'blk.0.attn_output.weight': matrix(width, 32),
    'blk.0.ffn_gate.weight': matrix(64, width), 'blk.0.ffn_up.weight': matrix(64, width), 'blk.0.ffn_down.weight': matrix(width, 64),
  });
}
