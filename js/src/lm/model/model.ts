// An open language model: its program, its weights on a device.

import { graphTexts, limitsHere, type planOfTexts, prefersGPU, programOfTexts, withDefaults } from '../../compile/train.js';
import type { Graph, Parts, StepOptions } from '../../graph/graph.js';
import type { Program } from '../../program/program.js';
import type { Place } from '../../runtime/open.js';
import type { Opener, RecoverOptions } from '../../runtime/recover.js';
import { checkCount, need, RlxError } from '../../values/errors.js';
import type { ModelFile } from '../gguf.js';
import type { Config } from './config.js';
import type { Engine } from './engine.js';
import { decodeGraph, drawGraph, prefillGraph, type Shape } from './graphs.js';
import { isAdapter, isGGUF, Weights } from './weights.js';

/** Options of {@link openModel}. */
export interface ModelOptions {
  /**
   * The maximum number of positions of prompt and result: memory is proportional to it. By default
   * that of the model, but at most 2,048.
   */
  context?: number;
  /** The tokens of a prompt that one run takes: a longer prompt takes several. 32 if not given. */
  chunk?: number;
  /** Where it runs: `best` if not given. */
  on?: Place;
  /** Runs in a worker, off the page's thread. By default where there are workers. */
  worker?: boolean;
  /**
   * Makes f32 of packed and half-precision weights: on the CPU they then take up to eight times the memory and tokens a fraction of
   * the time. If not given it is done on the CPU, for models that take at most 2 GiB so.
   */
  unpack?: boolean;
  /**
   * The number of texts that are generated at once, each with a context of its own; a further request then waits. If it is not given,
   * nor are `draft` and `draftModel`, one text is, and another request in between is an error.
   */
  slots?: number;
  /**
   * The number of tokens that speculative decoding proposes for a run: 0 if not given, or 4 with a `draftModel`. The model verifies them
   * in one run and keeps those that it would have chosen itself, so texts do not change. Requests with penalties and `allow` have none.
   */
  draft?: number;
  /**
   * Proposes the tokens: the file of a much smaller model with the same tokenizer. If not given they are looked up in the text so far,
   * which pays off where it repeats parts of the prompt.
   */
  draftModel?: ModelFile;
  /** Is called after each tensor that is read, with the bytes so far and those of all. */
  onProgress?(loaded: number, total: number): void;
  /** Ends loading. */
  signal?: AbortSignal;
}

/** The configuration of a model: of the metadata of a GGUF file, or of config.json. Errors are of kind `attr`, and `unsupported` for an unknown architecture. */
export async function configOf(file: ModelFile): Promise<Config> {
  need(file?.metadata instanceof Map, 'attr', 'a file of a model', 'open: of openGGUF or openHF', file);
  // The rules of all families are loaded with a model: those of one kind of file.
  return isGGUF(file) ? (await import('./of-gguf.js')).configOfGGUF(file) : (await import('./of-hf.js')).configOfHF(file.metadata);
}

/** What a model takes in memory, in bytes. */
export interface ModelMemory { weights: number; cache: number }

/** What a model takes in memory with options, and that of its draft: weights, and keys and values. Known before weights are read. */
export async function memoryOf(file: ModelFile, options: ModelOptions = {}): Promise<ModelMemory> {
  const { draftModel, ...rest } = options ?? {}, { config, weights, context } = await shapeOf(file, rest), { layers, kvHeads, headSize } = config;
  const own = { weights: weights.bytes, cache: 2 * layers * kvHeads * headSize * context * (rest.slots ?? 1) * Float32Array.BYTES_PER_ELEMENT };
  if (!draftModel) return own;
  const more = await memoryOf(draftModel, { ...rest, context: Math.min(context, (await configOf(draftModel)).context) });
  return { weights: own.weights + more.weights, cache: own.cache + more.cache };
}

/** The positions of a context. */
export function contextOf(config: Config, given = Math.min(config.context, 2048)): number {
  checkCount('context', given, 2, config.context);
  return given;
}

/** A language model that is open: it takes requests by `generate`, one at a time unless it was opened with slots. */
export class LanguageModel {
  readonly config: Config;
  /** The maximum number of positions of prompt and result. */
  readonly context: number;
  readonly chunk: number;
  /** The program that runs it, with the entries `prefill` and `decode`, after which `draw` draws a token. */
  readonly program: Program;
  /** The text of the chat template in its file, if there is one. */
  readonly template: string | undefined;
  /** The tokens whose keys and values are in the caches. @internal */
  cached: readonly number[] = [];
  /** Whether the last request added numbers to logits. @internal */
  biased = false;
  /** Whether a request is under way. @internal */
  busy = false;
  /** What serves requests in slots. @internal */
  engine: Engine | undefined;

  /** @internal */
  constructor({ config, context, chunk }: Shape, program: Program, template: string | undefined) {
    this.config = config;
    this.context = context;
    this.chunk = chunk;
    this.program = program;
    this.template = template;
  }

  /** Frees its memory. A request under way ends with an error of kind `closed`. */
  close(): void {
    this.program.close();
    this.engine?.close();
  }
}

/** The chat template in a file of a model. */
export function templateOf(file: ModelFile & { template?: string | undefined }): string | undefined {
  const given = file.template ?? file.metadata.get('tokenizer.chat_template');
  return typeof given === 'string' ? given : undefined;
}

/** The names of the options of a model. @internal */
export const modelOptions = 'context chunk on worker unpack onProgress signal';

/** The maximum bytes of weights that are unpacked to f32 by default: half of the maximum WebAssembly memory. */
const mostUnpacked = 2 ** 31;

/** Checks the options of a model and sets their defaults. @internal */
export async function shapeOf(file: ModelFile, { context: given, chunk = 32, unpack, on }: ModelOptions): Promise<Shape & { weights: Weights }> {
  const config = await configOf(file), context = contextOf(config, given);
  checkCount('chunk', chunk, 1, 4096);
  const all = new Weights(file, config, { unpack: true }), numbers = unpack ?? (!await prefersGPU({ ...on && { on } }) && all.bytes <= mostUnpacked);
  return { config, weights: numbers ? all : new Weights(file, config), context, chunk: Math.min(chunk, context) };
}

/** A program that recovers from a lost device: what snapshots have, and what is called when there is a program (again). Weights are read again. */
interface Recovering { recover: boolean | RecoverOptions; kept(name: string): boolean; opened(): void }

/** A training of a model: the graph of its loss, and the options of its step. @internal */
export interface Training { loss(): Parts<Graph>; options: StepOptions }

/** A model to open, with its graphs unless they are those of one text at a time. @internal */
export type Opened = Shape & { weights: Weights; graphs?: Readonly<Record<string, () => Parts<Graph>>> };

/** Opens a program with the entries of a model, and the entry `step` if it is trained, and reads the weights; again after a lost device, if it recovers. @internal */
export async function openEntries(shape: Opened, training: Training | undefined, options: ModelOptions, recovering?: Recovering): Promise<Program> {
  if (!recovering?.recover) return openOnce(shape, training, options, {});
  const { openRecovering } = await import('../../runtime/recover.js'), { worker } = options, { worker: threads } = withDefaults({ ...worker !== undefined && { worker } });
  const open: Opener = async (given) => {
    const opened = await openOnce(shape, training, options, given);
    recovering.opened();
    return opened;
  };
  return openRecovering(open, { recover: recovering.recover, kept: recovering.kept, worker: threads! });
}

/** The entries of a model as texts, and the limits of the device for which they are compiled. @internal */
export async function entriesOf(shape: Opened, training: Training | undefined, on: Place | undefined): Promise<Parameters<typeof planOfTexts>> {
  const limits = await limitsHere({ ...on && { on } });
  // In parts, as all at once would hold up the page.
  const graphs = await graphTexts({ ...shape.graphs ?? { prefill: () => prefillGraph(shape), decode: () => decodeGraph(shape), draw: () => drawGraph(shape) }, ...training && { step: training.loss } });
  shape.weights.check(graphs.flatMap(({ ports }) => ports));
  // From text, so that parameters start from the file, not from the initialisation of layers.
  const entries = graphs.map(({ name, text }) => ({ name, text, ...name === 'step' && { step: training!.options } }));
  return ['lm', entries, limits, { ...on && { on } }];
}

async function openOnce(shape: Opened, training: Training | undefined, { on, worker, ...reading }: ModelOptions, given: Parameters<Opener>[0]): Promise<Program> {
  const [name, entries, limits, place] = await entriesOf(shape, training, on);
  const opened = await programOfTexts(name, entries, limits, { ...place, ...worker !== undefined && { worker }, ...given });
  try {
    await readWeights(opened, shape.weights, reading);
    return opened;
  } catch (reason) {
    opened.close();
    throw reason;
  }
}

/** Reads the weights and writes them: one is written while the next is made, and another one waits, so that a worker need not. */
async function readWeights(program: Program, weights: Weights, { onProgress, signal }: ModelOptions): Promise<void> {
  const slots = program.plan.slots.filter(({ role, name }) => role === 'param' && !isAdapter(name)), total = slots.reduce((sum, { bytes }) => sum + bytes, 0);
  let loaded = 0, before: Promise<void> | undefined, writing: Promise<void> | undefined;
  onProgress?.(loaded, total);
  for await (const [{ name, bytes }, value] of weights.each(slots, true)) {
    await before;
    before = writing;
    if (signal?.aborted) throw new RlxError('abort', 'loading was aborted', { cause: signal.reason });
    writing = (value.write?.(program, name) ?? (program.take ?? program.write).call(program, name, value)).then(() => onProgress?.(loaded += bytes, total));
    writing.catch(() => {}); // which a later one waits for
  }
  await before;
  await writing;
}
