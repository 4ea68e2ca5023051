import { need, RlxError } from '../../values/errors.js';
import { render } from './evaluate.js';
import { errorAt, lex } from './lex.js';
import { Parser } from './parse.js';
import { type Dict, Failure, fromPage, type Value } from './value.js';

/** A turn of a conversation, with any further keys that the template reads, such as `tool_calls`. */
export interface Message {
  /** `system`, `user`, `assistant` or `tool`. */
  role: string;
  content: string;
  [key: string]: unknown;
}

/**
 * The variables of a template besides `messages`, such as `tools` and `bos_token`: strings,
 * numbers, booleans, null, and lists and objects of these.
 */
export interface RenderOptions {
  /** Ends the text where the answer of the model begins. False by default. */
  addGenerationPrompt?: boolean;
  /** The time for templates that write the date. By default that of the call. */
  now?: Date;
  /**
   * Rewrites each text of the messages, and of other lists and objects: as the tokenizer's `quote`, which keeps them from forging special
   * tokens. {@link chatPrompt} does that.
   */
  quote?: (text: string) => string;
  [variable: string]: unknown;
}

/** A chat template. */
export interface ChatTemplate {
  /**
   * The text of a conversation, as the model was trained with it. Throws an {@link RlxError} of kind `rule` if the template refuses the
   * conversation, `attr` for an operation that does not fit a value, `syntax` for a filter or test that is not known, `limit`.
   */
  render(messages: readonly Message[], options?: RenderOptions): string;
}

/** Reports a stack overflow as an error of too deep nesting. */
function bounded<T>(run: () => T): T {
  try {
    return run();
  } catch (reason) {
    if (reason instanceof Failure) throw errorAt(1, reason.kind, reason.message);
    if (reason instanceof RlxError || reason instanceof Error && !['RangeError', 'InternalError'].includes(reason.name)) throw reason;
    throw errorAt(1, 'limit', 'the template is nested too deep', reason);
  }
}

/**
 * Reads a chat template: a program in a part of Jinja, which a GGUF file has under `tokenizer.chat_template`, tokenizer_config.json under
 * `chat_template`. Templates come with models and are not trusted: they reach nothing but the values given, and steps, nesting, values and
 * text are bounded. Statements are for, if, set, macro, filter, break, continue and generation; white space is that of the transformers
 * library. Throws an {@link RlxError} of kind `syntax` or `limit`.
 */
export function chatTemplate(source: string): ChatTemplate {
  need(typeof source === 'string', 'attr', 'chatTemplate: the first argument', 'a text', source);
  const body = bounded(() => new Parser(lex(source)).block());
  return {
    render(messages, options = {}) {
      const { addGenerationPrompt = false, now = new Date(), quote = (text: string) => text, ...variables } = options;
      return bounded(() => render(body, (fromPage({ ...variables, messages, add_generation_prompt: addGenerationPrompt }, quote) as Dict).values as Map<string, Value>, now));
    },
  };
}
