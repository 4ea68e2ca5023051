// The tokens of a conversation. What people write stays text, whatever it looks like.

import { chatTemplate, type Message } from '../chat/chat.js';
import type { Tokenizer } from '../tokenizer/tokenizer.js';

/** Characters for private use, which enclose what has to stay text. */
const open = '\u{FFFF0}', close = '\u{FFFF1}';

/**
 * The tokens of messages by a chat template, up to where the answer begins. Special tokens are those of the template alone: a
 * content in which one is written is enclosed before the template runs, and encoded as text.
 */
export function chatTokens(tokenizer: Tokenizer, template: string, messages: readonly Message[], variables: Readonly<Record<string, unknown>> = {}): number[] {
  const token = (id: number | undefined) => id === undefined ? '' : tokenizer.decode([id]);
  const rendered = chatTemplate(template).render(messages.map((message) => enclosed(tokenizer, message)), {
    bos_token: token(tokenizer.bos), eos_token: token(tokenizer.eos[0]), addGenerationPrompt: true, ...variables,
  });
  const parts = rendered.split(new RegExp(`${open}([^${close}]*)${close}`, 'u')); // template, content, template, ...
  return parts.flatMap((part, i) => part ? [...tokenizer.encode(part, { special: i % 2 === 0 })] : []);
}

/** A message whose content is enclosed if it has special tokens in it. */
function enclosed(tokenizer: Tokenizer, message: Message): Message {
  if (typeof message?.content !== 'string') return message;
  const content = message.content.replaceAll(open, '').replaceAll(close, '');
  const asText = tokenizer.encode(content), asTokens = tokenizer.encode(content, { special: true });
  return { ...message, content: asText.length === asTokens.length && asText.every((id, i) => id === asTokens[i]) ? content : open + content + close };
}
