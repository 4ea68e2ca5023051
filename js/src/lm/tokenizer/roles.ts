import type { AddedToken } from './added.js';

/** The texts of special tokens that begin a text, and that end a text or a turn, in the families of models. */
const beginNames = ['<s>', '<|begin_of_text|>', '<bos>'];
const endNames = ['</s>', '<|endoftext|>', '<|im_end|>', '<|end_of_text|>', '<|eot_id|>', '<|eom_id|>', '<|end|>', '<eos>', '<end_of_turn>'];

/** The ids of the special tokens that have usual names: of the first that begins texts, of all that end them. */
export function usualTokens(added: readonly AddedToken[]): { bos: number | undefined; eos: number[] } {
  const ids = new Map(added.filter(({ special }) => special).map(({ content, id }) => [content, id])), of = (names: readonly string[]) => names.flatMap((name) => ids.get(name) ?? []);
  return { bos: of(beginNames)[0], eos: of(endNames) };
}
