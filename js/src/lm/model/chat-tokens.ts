// The tokens of a conversation.

import { chatTemplate, type Message } from '../chat/chat.js';
import type { Tokenizer } from '../tokenizer/tokenizer.js';

/**
 * The tokens of messages by a chat template, up to where the answer begins. Special tokens are those of the template alone: what
 * people write stays text, whatever it looks like.
 */
export function chatTokens(tokenizer: Tokenizer, template: string, messages: readonly Message[], variables: Readonly<Record<string, unknown>> = {}): number[] {
  const name = (id: number | undefined) => id === undefined ? '' : tokenizer.token(id) ?? '';
  const quoted = messages.map((message) => typeof message?.content === 'string' ? { ...message, content: tokenizer.quote(message.content) } : message);
  const text = chatTemplate(template).render(quoted, { bos_token: name(tokenizer.bos), eos_token: name(tokenizer.eos[0]), addGenerationPrompt: true, ...variables });
  return [...tokenizer.encode(text, { special: true, quoted: true })];
}
