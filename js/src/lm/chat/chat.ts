import { RlxError } from '../../values/errors.js';

/** A turn of a conversation, with any further keys that the template reads, such as `tool_calls`. */
export interface Message {
  role: string;
  content: string;
  [key: string]: unknown;
}

/** The variables of a template besides `messages`: `tools`, `bos_token`, ... */
export interface RenderOptions {
  /** Ends the text where the answer of the model begins. False by default. */
  addGenerationPrompt?: boolean;
  [variable: string]: unknown;
}

/** A chat template. */
export interface ChatTemplate {
  /** The text of a conversation, as the model was trained with it. */
  render(messages: readonly Message[], options?: RenderOptions): string;
}

/** Reads a chat template, a program in a part of Jinja. */
export function chatTemplate(_source: string): ChatTemplate {
  throw new RlxError('unsupported', 'chatTemplate');
}
