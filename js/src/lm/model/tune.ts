// Fine-tuning of a model on a text: low-rank matrices are added to its weights, which stay frozen,
// packed ones too (Hu et al., LoRA; Dettmers et al., QLoRA).

import { planOfTexts } from '../../compile/train.js';
import type { Optimizer } from '../../graph/graph.js';
import { fill } from '../../graph/initial.js';
import { decodePlan } from '../../plan/decode.js';
import { persistentOf } from '../../plan/plan.js';
import type { RecoverOptions } from '../../runtime/recover.js';
import { type Summary, Trainer } from '../../runtime/trainer.js';
import { type AdapterFiles, encodeAdapter } from '../../safetensors/adapter.js';
import { decodeSafetensors, encodeSafetensors } from '../../safetensors/file.js';
import { checkCount, checkOptions, RlxError } from '../../values/errors.js';
import type { StoredTensor } from '../../values/tensor.js';
import type { ModelFile } from '../gguf.js';
import type { Tokenizer } from '../tokenizer/tokenizer.js';
import { familyOf } from './family.js';
import { lossGraph } from './graphs.js';
import { entriesOf, LanguageModel, modelOptions, type ModelOptions, openEntries, shapeOf, templateOf, type Training } from './model.js';
import { isAdapter } from './weights.js';

/** Options of {@link openTuning}. */
export interface TuningOptions extends Omit<ModelOptions, 'slots' | 'draft' | 'draftModel'> {
  /** The rank of the added matrices. 8 if not given. */
  rank?: number;
  /** The added product is scaled by alpha / rank. Twice the rank if not given. */
  alpha?: number;
  /** The rows of a step and the tokens of each. 1 and 64 if not given; memory is proportional to both. */
  rows?: number;
  length?: number;
  /** Adam if not given. */
  optimizer?: Optimizer;
  /** The seed of the matrices, and of the order of the text. 0 if not given. */
  seed?: number;
  /**
   * Whether, and how, it goes on on another device after its own is lost: with the adapter and the optimizer of the last snapshot, and
   * the weights of the file, which must stay open. True if not given.
   */
  recover?: boolean | RecoverOptions;
}

/** Options of {@link Tuning.train}. */
export interface TuningRun {
  steps: number;
  /** The learning rate. 1e-3 if not given. */
  rate?: number;
  /** Ends the run before the next step. */
  signal?: AbortSignal;
  /** Is called with each loss, in nats a token, and the number of its step. */
  onLoss?(step: number, loss: number): void;
}

/** The layers of a family that get matrices: those of its blocks. */
function targetsOf(architecture: string): string[] {
  const { qkv, q, k, v, out, gateUp, gate, up, down } = familyOf(architecture).names;
  return [qkv, q, k, v, out, gateUp, gate, up, down].filter((name) => name !== undefined);
}

/** A model with an adapter in training. `model` generates with the current adapter. */
export class Tuning {
  readonly model: LanguageModel;
  readonly #trainer: Trainer;
  readonly #rank: number;
  readonly #alpha: number;
  readonly #rows: number;
  readonly #length: number;
  #seed: number;

  /** @internal */
  constructor(model: LanguageModel, trainer: Trainer, { rank, alpha, rows, length, seed }: Required<Pick<TuningOptions, 'rank' | 'alpha' | 'rows' | 'length' | 'seed'>>) {
    this.model = model;
    this.#trainer = trainer;
    this.#rank = rank;
    this.#alpha = alpha;
    this.#rows = rows;
    this.#length = length;
    this.#seed = seed;
  }

  /** The parameters of the adapter. */
  get #slots() { return this.model.program.plan.slots.filter(({ role, name }) => role === 'param' && isAdapter(name)); }

  /** What training changes: the adapter, and the states of the optimizer and of the losses. */
  get #tuned() { return persistentOf(this.model.program.plan.slots).filter(({ name }) => isTuned(name)); }

  /** The number of steps so far. */
  get steps(): number { return this.#trainer.steps; }

  /**
   * Trains the adapter on a text: each step on rows of its tokens at random places, and the tokens that follow. A text that is shorter
   * than a row is repeated. Errors are of kind `missing` for a text of fewer than two tokens, and those of the trainer.
   */
  async train(text: string, tokenizer: Tokenizer, { steps, rate: lr = 1e-3, signal, onLoss }: TuningRun): Promise<Summary> {
    const batch = this.#batches(text, tokenizer);
    try {
      return await this.#trainer.run({
        steps, every: 1, batches: () => batch(this.steps), inputs: { lr }, ...signal && { signal },
        onProgress: ({ step, losses }) => losses.forEach((loss, i) => onLoss?.(step - losses.length + i + 1, loss)),
      });
    } finally {
      this.model.cached = [];
    }
  }

  #batches(text: string, tokenizer: Tokenizer): (step: number) => { tokens: Int32Array; next: Int32Array } {
    const once = tokenizer.encode(text), length = this.#length;
    if (once.length < 2) throw new RlxError('missing', `the text has ${once.length} tokens: it must have two or more`);
    const end = tokenizer.eos[0], whole = end === undefined ? [...once] : [...once, end];
    const ids: number[] = [];
    while (ids.length <= length) ids.push(...whole);
    return (step) => {
      const tokens = new Int32Array(this.#rows * length), next = new Int32Array(this.#rows * length);
      for (let row = 0; row < this.#rows; row++) {
        const from = hash(this.#seed, step * this.#rows + row) % (ids.length - length);
        tokens.set(ids.slice(from, from + length), row * length);
        next.set(ids.slice(from + 1, from + length + 1), row * length);
      }
      return { tokens, next };
    };
  }

  /** Reinitialises the adapter and the optimizer: the model is then unchanged again. */
  async reset(): Promise<void> {
    const { program } = this.model;
    for (const { name, role, dtype, shape } of program.plan.slots) {
      if (role === 'state' && name.startsWith('optim/')) await program.write(name, { data: fill(name, dtype, shape, 0, 0), shape });
    }
    for (const { name, dtype, shape } of this.#slots) {
      const bound = 1 / Math.sqrt(shape[0]!), initial = /lora_A/.test(name) ? { rule: 'uniform', args: [-bound, bound] } : 0;
      await program.write(name, { data: fill(name, dtype, shape, initial, this.#seed), shape });
    }
    this.model.cached = [];
  }

  /**
   * Calls a function with the adapter disabled: `model` generates without it in that call. After a lost device the adapter is that of
   * the last snapshot again.
   */
  async without<T>(run: () => Promise<T>): Promise<T> {
    const { program } = this.model, ups = this.#slots.filter(({ name }) => /lora_B/.test(name)), { values } = await program.readAll(ups.map(({ name }) => name));
    const write = async (of: (name: string) => Float32Array | undefined) => {
      // On the device of this moment: what is written here is not for a snapshot.
      for (const { name, shape } of ups) await (program.recovery?.current ?? program).write(name, { data: of(name) ?? new Float32Array(shape[0]! * shape[1]!), shape });
      this.model.cached = [];
    };
    await write(() => undefined);
    try {
      return await run();
    } finally {
      await write((name) => values[name] as Float32Array);
    }
  }

  /**
   * The adapter as PEFT reads it: the files adapter_model.safetensors and adapter_config.json. `base` names the model that it belongs
   * to. Of a GGUF file with heads in pairs of neighbours, as those of Llama, rows of queries and keys are put in Hugging Face's order.
   */
  async save(base = ''): Promise<AdapterFiles> {
    const { config, program } = this.model, { values } = await program.readAll(this.#slots.map(({ name }) => name)), tensors: Record<string, StoredTensor> = {};
    for (const { name, shape } of this.#slots) {
      const data = values[name] as Float32Array, module = name.split('/').at(-3), paired = config.rope?.interleaved && /lora_B/.test(name);
      const heads = !paired ? 0 : module === 'q_proj' ? config.heads : module === 'k_proj' ? config.kvHeads : 0;
      tensors[name] = { dtype: 'f32', shape, data: heads ? inHalves(data, heads, shape[1]!, config.rope!.size) : data };
    }
    return encodeAdapter({ tensors, rank: this.#rank, alpha: this.#alpha, base, task: 'CAUSAL_LM', inOut: config.architecture === 'gpt2' });
  }

  /**
   * What a training goes on from, as a safetensors file: the matrices and the states of the optimizer and of the losses, by
   * their names in the program, which a native one has too. The weights of the model are not in it.
   */
  async saveCheckpoint(): Promise<Uint8Array<ArrayBuffer>> {
    const { values } = await this.model.program.readAll(this.#tuned.map(({ name }) => name));
    const tensors = Object.fromEntries(this.#tuned.map(({ name, dtype, shape }) => [name, { dtype, shape, data: values[name]! }]));
    return encodeSafetensors(tensors, { alpha: `${this.#alpha}`, seed: `${this.#seed}` });
  }

  /**
   * Goes on from a file of {@link Tuning.saveCheckpoint}, or of a native training of the same file of a model, whose weights
   * it ignores. With the `rows` and `length` of before, and the same text and rate, each step is that of a training that was
   * not interrupted. Errors are of kind `syntax`, `missing` and `shape` for a file that does not fit, and `attr` for another
   * `alpha`; nothing is then changed.
   */
  async loadCheckpoint(file: Uint8Array | ArrayBuffer): Promise<void> {
    const { tensors, metadata: { alpha = this.#alpha, seed = this.#seed } } = decodeSafetensors(file), own: Record<string, StoredTensor> = {};
    if (Number(alpha) !== this.#alpha) throw new RlxError('attr', `the checkpoint has alpha ${alpha}: it must be ${this.#alpha}`, { name: 'alpha' });
    for (const { name } of this.#tuned) {
      if (!tensors[name]) throw new RlxError('missing', `the checkpoint lacks ${name}`, { name });
      own[name] = tensors[name];
    }
    await this.#trainer.load(own, { allowMissing: true });
    this.#seed = Number(seed);
    this.model.cached = [];
  }

  /** Frees its memory. */
  close(): void { this.model.close(); }
}

/** A number of 32 bits of two: the last steps of MurmurHash3 (A. Appleby). */
function hash(seed: number, n: number): number {
  let x = Math.imul(n + 1, 0x9e3779b1) ^ seed;
  x = Math.imul(x ^ x >>> 16, 0x85ebca6b);
  x = Math.imul(x ^ x >>> 13, 0xc2b2ae35);
  return (x ^ x >>> 16) >>> 0;
}

/** Rows of [heads, size] elements with pairs of neighbours in each head, as its first and second half. Only the rotated elements move. */
function inHalves(x: Float32Array, heads: number, columns: number, rotated: number): Float32Array {
  const out = x.slice(), size = columns / heads;
  for (let head = 0; head < x.length; head += size) {
    for (let i = 0; i < rotated; i++) out[head + i % 2 * rotated / 2 + (i >> 1)] = x[head + i]!;
  }
  return out;
}

/** Whether an adapter's training goes on from a state of this name. */
const isTuned = (name: string): boolean => isAdapter(name) || /^(optim|history)\//.test(name);

/** What the options of a tuning mean for a file: the model, its training, and the options of the model. */
async function trainingOf(what: string, file: ModelFile, options: TuningOptions | undefined) {
  checkOptions(what, options, `rank alpha rows length optimizer seed recover ${modelOptions}`);
  const { rank = 8, alpha = 2 * rank, rows = 1, length = 64, optimizer = { kind: 'adam' }, seed = 0, recover = true, ...rest } = options ?? {};
  checkCount('rank', rank, 1, 4096);
  checkCount('rows', rows, 1, 4096);
  checkCount('length', length, 1, 65536);
  checkCount('seed', seed, 0, 2 ** 32 - 1);
  const base = await shapeOf(file, rest), shape = { ...base, adapter: { rank, alpha, targets: targetsOf(base.config.architecture) } };
  const training: Training = { loss: () => lossGraph(shape, rows, length), options: { optimizer, history: 64 } };
  return { shape, training, rest, recover, sizes: { rank, alpha, rows, length, seed } };
}

/** See tuning.ts. */
export async function tuningMemoryOf(file: ModelFile, options?: TuningOptions): Promise<number> {
  const { shape, training, rest } = await trainingOf('tuningMemoryOf', file, options);
  return decodePlan(await planOfTexts(...await entriesOf(shape, training, rest.on))).buffers.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** See tuning.ts. */
export async function openTuning(file: ModelFile, options?: TuningOptions): Promise<Tuning> {
  const { shape, training, rest, recover, sizes } = await trainingOf('openTuning', file, options);
  let tuning: Tuning | undefined;
  const program = await openEntries(shape, training, rest, {
    recover, kept: isTuned, opened() { if (tuning) tuning.model.cached = []; },
  });
  try {
    tuning = new Tuning(new LanguageModel(shape, program, templateOf(file)), new Trainer(program), sizes);
    await tuning.reset();
    return tuning;
  } catch (reason) {
    program.close();
    throw reason;
  }
}
