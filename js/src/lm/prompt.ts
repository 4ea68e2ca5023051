import { need } from '../values/errors.js';
import type { ChatTemplate, Message, RenderOptions } from './chat/chat.js';
import type { Tokenizer } from './tokenizer/tokenizer.js';

/**
 * The ids of a conversation, by its template, for the model to answer: the generation prompt is added unless an option says otherwise.
 * Special tokens in the messages and tools are text: a user who types `<|im_end|>` ends no turn. The variables bos_token and eos_token are
 * those of the tokenizer unless they are given. Throws the errors of the template and of the tokenizer.
 */
export function chatPrompt(tokenizer: Tokenizer, template: ChatTemplate, messages: readonly Message[], options: RenderOptions = {}): Int32Array {
  need(typeof tokenizer?.quote === 'function', 'attr', 'chatPrompt: the tokenizer', 'a Tokenizer', tokenizer);
  need(typeof template?.render === 'function', 'attr', 'chatPrompt: the template', 'a ChatTemplate', template);
  const textOf = (id: number | undefined) => id === undefined ? '' : tokenizer.token(id) ?? '';
  const text = template.render(messages, {
    addGenerationPrompt: true, bos_token: textOf(tokenizer.bos), eos_token: textOf(tokenizer.eos[0]), ...options, quote: (text) => tokenizer.quote(text),
  });
  return tokenizer.encode(text, { special: true, quoted: true });
}
