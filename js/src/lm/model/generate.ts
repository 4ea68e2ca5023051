// Text by a language model, token by token.

import { checkCount, checkOptions, classOf, need, RlxError } from '../../values/errors.js';
import { chatTemplate, type Message, type RenderOptions } from '../chat/chat.js';
import { chatPrompt } from '../prompt.js';
import type { Allow } from '../grammar/vocabulary.js';
import type { Job, Piece, Taken } from './engine.js';
import type { LanguageModel } from './model.js';
import type { Inputs } from '../../program/types.js';
import { biasState } from './graphs.js';
import { type Sampling, samplingRow } from './sample.js';
import { Stopper } from './stopper.js';
import type { Tokenizer } from '../tokenizer/tokenizer.js';

/** Options of {@link generate}. */
export interface GenerateOptions extends Sampling {
  /** The maximal number of tokens of the result. What the context has room for if not given. */
  maxTokens?: number;
  /** Texts that end the result, which does not have them. They may begin and end within tokens. */
  stop?: readonly string[];
  /**
   * The seed of the random numbers, an integer below 2³², random by default. Equal requests with
   * equal seeds have equal results.
   */
  seed?: number;
  /** Numbers that are added to the logits of tokens, after penalties: -Infinity for one that is not to be chosen. */
  bias?: Readonly<Record<number, number>>;
  /** The tokens among which it chooses. All if not given. */
  allowed?: ArrayLike<number>;
  /**
   * Sets the tokens that may follow the result so far, which ends where it sets none: that of a `Grammar` of `/grammar`, for
   * one. Each token then begins when the one before it is read.
   */
  allow?: Allow;
  /** Ends the result. The iteration then throws an error of kind `abort`. */
  signal?: AbortSignal;
  /** The chat template, for messages. That of the model's file if not given. */
  template?: string;
  /** More variables of the chat template. */
  variables?: RenderOptions;
}

/** Counts of tokens and times in milliseconds, so far. */
export interface GenerateStats {
  /** The tokens of the prompt, and those of its beginning that were there from an earlier request. */
  promptTokens: number;
  reused: number;
  /** The tokens of the result, with the one that ended it. */
  tokens: number;
  /** The tokens that speculative decoding proposed, and those of them that are in the result. */
  drafted: number;
  accepted: number;
  /** The time to the first token, and from there to the last one. */
  prefill: number;
  decode: number;
  /** The tokens of the prompt per second, and those after the first one. 0 where nothing is measured yet. */
  prefillRate: number;
  decodeRate: number;
}

/** A result that comes, once: `for await (const { text } of generation)`. Breaking off ends it. */
export interface Generation extends AsyncIterable<Piece> {
  readonly stats: GenerateStats;
  /** Why it ended: at a token or a text that ends it, or at the bound of its length. Undefined before. */
  readonly finish: 'stop' | 'length' | undefined;
  /** The whole text. */
  text(): Promise<string>;
}

const known = 'temperature topK topP minP repetition presence frequency bias allowed allow maxTokens stop seed signal template variables';

/**
 * Goes on from a prompt, or answers the last of messages. Two tokens are computed while the one before them is read. Errors
 * are of kind `limit` for a prompt without room in the context, `busy` while another request is under way, `closed` for a
 * result that was read before, `attr` for options out of range, `abort`, and those of the program: `lost` for a device that is
 * lost in between.
 */
export function generate(model: LanguageModel, tokenizer: Tokenizer, prompt: string | readonly Message[] | ArrayLike<number>, options?: GenerateOptions): Generation {
  checkOptions('generate', options, known);
  need(typeof model?.context === 'number', 'attr', 'generate: the model', 'a LanguageModel', model);
  need(typeof tokenizer?.encode === 'function', 'attr', 'generate: the tokenizer', 'a Tokenizer', tokenizer);
  return new Request(model, tokenizer, promptOf(model, tokenizer, prompt, options ?? {}), options ?? {});
}

/** The tokens of a prompt. */
function promptOf(model: LanguageModel, tokenizer: Tokenizer, prompt: string | readonly Message[] | ArrayLike<number>, { template = model.template, variables = {} }: GenerateOptions): number[] {
  if (typeof prompt === 'string') return [...tokenizer.encode(prompt, { bos: true })];
  if (ArrayBuffer.isView(prompt) || typeof (prompt as ArrayLike<number>)?.[0] === 'number') return Array.from(prompt as ArrayLike<number>);
  if (!Array.isArray(prompt)) throw new RlxError('attr', `generate: the prompt is ${classOf(prompt)}: it must be a text, messages or tokens`);
  if (template === undefined) throw new RlxError('missing', 'generate: the model has no chat template: give one, or a text', { name: 'template' });
  return [...chatPrompt(tokenizer, chatTemplate(template), prompt as readonly Message[], variables)];
}

/** Random numbers from 0 to 1 of a seed: mulberry32. */
function randoms(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = state + 0x6d2b79f5 >>> 0;
    let t = Math.imul(state ^ state >>> 15, state | 1);
    t ^= t + Math.imul(t ^ t >>> 7, t | 61);
    return ((t ^ t >>> 14) >>> 0) / 2 ** 32;
  };
}

/** Added to the logit of a token that is not to be chosen: kernels may take infinities for impossible. */
const never = -1e30;

/** What is added to the logits of all tokens; undefined for nothing. */
function biasOf({ bias = {}, allowed }: GenerateOptions, vocabulary: number): Float32Array | undefined {
  const all = new Float32Array(vocabulary).fill(allowed ? never : 0), more = Object.entries(bias);
  for (const id of [...Array.from(allowed ?? []), ...more.map(([id]) => id)]) {
    if (!(id in all)) throw new RlxError('index', `generate: bias and allowed have token ${id}: there are ${vocabulary}`);
  }
  for (const id of Array.from(allowed ?? [])) all[id] = 0;
  for (const [id, x] of more) {
    need(x < Infinity, 'attr', `generate: the bias of token ${id}`, 'a number below Infinity', x);
    all[Number(id)] = Math.max(never, all[Number(id)]! + x);
  }
  return allowed || more.length ? checkLeft('bias and allowed', all) : undefined;
}

/** Numbers added to logits, of which one leaves its token. */
function checkLeft(what: string, bias: Float32Array): Float32Array {
  if (!bias.some((x) => x > never / 2)) throw new RlxError('attr', `generate: ${what} must be such that a token is left`);
  return bias;
}

class Request implements Generation {
  readonly stats: GenerateStats;
  finish: 'stop' | 'length' | undefined;
  readonly #model: LanguageModel;
  readonly #tokenizer: Tokenizer;
  readonly #prompt: readonly number[];
  readonly #options: GenerateOptions;
  readonly #limit: number;
  readonly #random: () => number;
  readonly #bias: Float32Array | undefined;
  /** The bits of the tokens that may follow the result. */
  #allowed!: Uint32Array;
  #begun = false;
  /** The positions whose runs have started. */
  #past = 0;

  constructor(model: LanguageModel, tokenizer: Tokenizer, prompt: readonly number[], options: GenerateOptions) {
    const { maxTokens = Infinity, seed = Math.floor(Math.random() * 2 ** 32), stop = [] } = options, { context, config: { vocabulary } } = model;
    if (maxTokens !== Infinity) checkCount('maxTokens', maxTokens, 1);
    checkCount('seed', seed, 0, 2 ** 32 - 1);
    samplingRow(options, 0);
    this.#bias = biasOf(options, vocabulary);
    if (options.allow) need(typeof options.allow === 'function', 'attr', 'generate: allow', 'a function', options.allow);
    if (!Array.isArray(stop) || !stop.every((one) => typeof one === 'string' && one !== '')) throw new RlxError('attr', 'generate: stop must be a list of nonempty texts', { name: 'stop' });
    const wrong = prompt.find((id) => !(Number.isInteger(id) && id >= 0 && id < vocabulary));
    if (wrong !== undefined) throw new RlxError('index', `generate: the prompt has token ${wrong}: there are ${vocabulary}`);
    if (prompt.length === 0) throw new RlxError('missing', 'generate: the prompt has no tokens: it must have one or more');
    if (prompt.length >= context) throw new RlxError('limit', `the prompt has ${prompt.length} tokens: it must have fewer than the context, ${context}`, { needed: prompt.length + 1, allowed: context });
    this.#model = model;
    this.#tokenizer = tokenizer;
    this.#prompt = prompt;
    this.#options = { ...options };
    this.#limit = Math.min(maxTokens, context - prompt.length);
    this.#random = randoms(seed);
    this.stats = { promptTokens: prompt.length, reused: 0, tokens: 0, drafted: 0, accepted: 0, prefill: 0, decode: 0, prefillRate: 0, decodeRate: 0 };
  }

  async text(): Promise<string> {
    let all = '';
    for await (const { text } of this) all += text;
    return all;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Piece, void, void> {
    const model = this.#model;
    if (model.busy) throw new RlxError('busy', 'generate: another request is under way');
    if (this.#begun) throw new RlxError('closed', 'generate: the result was read before: call generate again');
    this.#begun = true;
    if (model.engine) {
      for await (const taken of model.engine.pieces(this.#job())) yield this.#shown(taken);
      return;
    }
    model.busy = true;
    const reused = this.#reuse(), results: number[] = [], flights: Promise<number>[] = [];
    model.cached = [];
    try {
      const take = this.#reader(), biased = !!(this.#bias ?? this.#options.allow);
      if (biased || model.biased) await this.#writeBias();
      model.biased = biased;
      await this.#prefill(reused, flights);
      yield* this.#pieces(take, flights, results);
    } finally {
      const settled = await Promise.allSettled(flights);
      model.busy = false;
      // The cached positions are a prefix of the next prompt when a conversation continues.
      if (this.#past > 0 && settled.every(({ status }) => status === 'fulfilled')) model.cached = [...this.#prompt, ...results].slice(0, this.#past);
    }
  }

  /** What the engine of a model with slots does for it. */
  #job(): Job {
    const { stats } = this, { allow, signal } = this.#options;
    let take: (token: number) => Taken;
    return {
      prompt: this.#prompt, limit: this.#limit, sampling: this.#options, signal, masked: !!allow, random: this.#random,
      bias: () => allow || this.#bias ? this.#nextBias : undefined,
      begin: (reused) => {
        stats.reused = reused;
        take = this.#reader();
      },
      take: (token) => take(token),
      drafted(proposed, accepted) {
        stats.drafted += proposed;
        stats.accepted += accepted;
      },
    };
  }

  /** Takes the tokens of the result as they come. Time begins here. */
  #reader(): (token: number) => Taken {
    const { eos } = this.#tokenizer, stream = this.#tokenizer.stream(), stopper = new Stopper(this.#options.stop ?? []), results: number[] = [], begun = performance.now();
    let first = begun;
    this.#mayFollow(results);
    return (token) => {
      const now = performance.now(), count = results.push(token), ended = eos.includes(token);
      if (count === 1) first = now;
      this.#count(count, first - begun, now - first);
      let { text, found } = stopper.add(ended ? '' : stream.push(token));
      const finish = ended || found ? 'stop' : count === this.#limit ? 'length' : this.#mayFollow(results) ? undefined : 'stop';
      if (finish && !found) text += stopper.add(stream.end()).text + stopper.rest();
      return { piece: { token, text }, finish };
    };
  }

  #shown({ piece, finish }: Taken): Piece {
    this.finish = finish;
    return piece;
  }

  /** How many tokens of the prompt are there from the request before. The last one is computed, for its logits, and all are for a penalty of tokens of the prompt. */
  #reuse(): number {
    const { cached } = this.#model, prompt = this.#prompt;
    if ((this.#options.repetition ?? 1) !== 1) return 0;
    let n = 0;
    while (n < cached.length && n < prompt.length - 1 && cached[n] === prompt[n]) n++;
    return n;
  }

  #check(): void {
    const { signal } = this.#options;
    if (signal?.aborted) throw new RlxError('abort', 'the generation was aborted', { cause: signal.reason });
  }

  /** Finds the tokens that may follow a result; whether there are any. */
  #mayFollow(results: readonly number[]): boolean {
    const { allow } = this.#options;
    if (!allow) return true;
    allow(results, this.#allowed = new Uint32Array(Math.ceil(this.#model.config.vocabulary / 32)));
    return this.#allowed.some(Boolean);
  }

  /** What is added to the logits of the next token. */
  get #nextBias(): Float32Array {
    const bias = this.#bias ?? new Float32Array(this.#model.config.vocabulary), bits = this.#allowed;
    return this.#options.allow ? checkLeft('allow', bias.map((x, id) => bits[id >> 5]! >>> id & 1 ? x : never)) : bias;
  }

  async #writeBias(): Promise<void> {
    await this.#model.program.write(biasState, { data: this.#nextBias, shape: [1, this.#model.config.vocabulary] });
  }

  /** Computes the prompt in chunks: the first token of the result is then under way. */
  async #prefill(reused: number, flights: Promise<number>[]): Promise<void> {
    const { chunk } = this.#model, prompt = this.#prompt;
    this.stats.reused = reused;
    for (let at = reused; at < prompt.length; at += chunk) {
      this.#check();
      const tokens = new Int32Array(chunk), part = prompt.slice(at, at + chunk), last = at + part.length === prompt.length;
      tokens.set(part);
      await this.#run('prefill', { tokens, count: Int32Array.of(part.length), past: Int32Array.of(at), first: Number(at === reused) }, last ? flights : undefined);
    }
    this.#past = prompt.length;
  }

  /** Runs an entry. The token that it chooses, or that is drawn instead, joins `flights`. */
  async #run(entry: 'prefill' | 'decode', inputs: Inputs, flights?: Promise<number>[]): Promise<void> {
    const { program } = this.#model, read = { read: ['token'] }, draws = !!flights && (this.#options.temperature ?? 0) > 0, by = samplingRow(this.#options, draws ? this.#random() : 0);
    let { reading } = await program.run(entry, { ...inputs, by }, flights && !draws ? read : {});
    if (draws) ({ reading } = await program.run('draw', { by }, read));
    flights?.push(tokenOf(reading!));
  }

  async *#pieces(take: (token: number) => Taken, flights: Promise<number>[], results: number[]): AsyncGenerator<Piece, void, void> {
    const { allow } = this.#options;
    for (let issued = 1; !this.finish;) {
      this.#check();
      // A page hears late of a token, in which time a fast device computes several. A slow one would compute more than are needed.
      while (flights.length < (allow ? 1 : this.stats.decodeRate > 200 ? 5 : 3) && issued < this.#limit) {
        if (allow) await this.#writeBias();
        await this.#run('decode', { past: Int32Array.of(this.#past) }, flights);
        this.#past++;
        issued++;
      }
      const token = await flights[0]!;
      flights.shift();
      results.push(token);
      yield this.#shown(take(token));
    }
  }

  #count(tokens: number, prefill: number, decode: number): void {
    const { stats } = this, rate = (n: number, ms: number) => n > 0 && ms > 0 ? n / ms * 1000 : 0;
    Object.assign(stats, { tokens, prefill, decode, prefillRate: rate(stats.promptTokens - stats.reused, prefill), decodeRate: rate(tokens - 1, decode) });
  }
}

/** The token of a reading. One that is not waited for fails where it is. */
function tokenOf(reading: Promise<{ values: Readonly<Record<string, ArrayLike<number>>> }>): Promise<number> {
  const token = reading.then(({ values }) => values.token![0]!);
  token.catch(() => {});
  return token;
}
