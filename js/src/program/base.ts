// What programs on all devices share: names, checks, the rows of scalars.

import { type Entry, persistentOf, type Plan, type Slot, type Status } from '../plan/plan.js';
import { rowBytes } from '../plan/validate.js';
import { roundUp, type TensorData } from '../values/dtype.js';
import { checkCount, checkOptions, RlxError, unknownName } from '../values/errors.js';
import { byName, named } from '../values/named.js';
import { type HostTensor, type StoredTensor, Tensor, type TensorType } from '../values/tensor.js';
import { checkHost, checkNames, deviceInput, hostBytes, missing, scalarBytes } from './inputs.js';
import { checkLoad } from './load.js';
import type { Device, LoadOptions, Program, Reading, Run, RunOptions } from './program.js';
import type { Input, Inputs } from './types.js';

/** The effect of a checked input: bytes to write, the program's handle of a tensor, or of a buffer with the bytes at an offset, or nothing. */
export interface Upload { slot: Slot; bytes?: Uint8Array<ArrayBuffer> | undefined; from?: unknown; at?: number }

/**
 * An entry with the uploads of its inputs and scalars, which each run sets again, and the rows of the scalars, one for
 * each step of a run. `bound` is the row of bound ones.
 */
export interface Runnable { entry: Entry; uploads: Upload[]; rows: Uint8Array<ArrayBuffer>; bound: Uint8Array; stride: number }

/** The entries of a plan, for runs of up to `maxSteps` steps. */
export interface Runnables<E> { readonly entries: ReadonlyMap<string, E>; readonly maxSteps: number }

/** Makes an entry of a plan runnable, for runs of up to `maxSteps` steps. */
export function runnable({ slots }: Plan, entry: Entry, maxSteps: number): Runnable {
  const stride = roundUp(entry.uniformBytes, rowBytes), uploads = [...entry.inputs, ...entry.scalars].map((i): Upload => ({ slot: slots[i]! }));
  return { entry, stride, rows: new Uint8Array(stride * maxSteps), bound: new Uint8Array(stride), uploads };
}

/** The error encoded in the status words, if a check failed on the device. */
export function statusError({ codes }: Status, [code]: Uint32Array): RlxError | undefined {
  if (!code) return undefined;
  const { node, message } = codes.find((c) => c.code === code) ?? { node: 'unknown', message: `code ${code}` };
  return new RlxError('index', `${node}: ${message}; nothing has changed`, { node, op: node });
}

/** A program on a plan, without the device-specific part. */
export abstract class BaseProgram<E extends Runnable = Runnable> implements Program {
  readonly plan: Plan;
  abstract readonly device: Device;
  readonly lost: Promise<RlxError>;
  steps = 0;

  /** The error that ended the program. */
  protected error: RlxError | undefined;
  protected lastEntry: E | undefined;
  /** The step that was last saved. */
  protected savedAt = 0;
  readonly #runnables: Runnables<E>;
  readonly #persistent: Map<string, Slot>;
  /** The names that need no value any more: bound inputs, parameters with a value, and complete entries. */
  readonly #bound = new Set<Slot | Entry>();
  #announce!: (error: RlxError) => void;

  constructor(plan: Plan, runnables: Runnables<E>) {
    this.plan = plan;
    this.#runnables = runnables;
    this.#persistent = new Map(persistentOf(plan.slots).map((slot) => [slot.name, slot]));
    this.lost = new Promise((resolve) => this.#announce = resolve);
  }

  abstract run(entry: string, inputs?: Inputs | null, options?: RunOptions | null): Promise<Run<any>>;
  /** Applies inputs. */
  protected abstract store(uploads: Upload[]): void;
  /** The contents of slots as of now. */
  protected abstract capture(slots: Slot[]): Promise<Reading>;
  /** A new tensor, of some bytes or of the current value of a slot. */
  protected abstract tensor(type: TensorType, from: Uint8Array<ArrayBuffer> | Slot): Tensor;
  /** Releases the resources outside this object. */
  protected abstract release(): void;

  protected check(): void {
    if (this.error) throw this.error;
  }

  /** Rejects the calls in progress and all later ones. False if it has happened before. */
  protected end(error: RlxError): boolean {
    if (this.error) return false;
    this.error = error;
    return true;
  }

  protected fail(error: RlxError): void {
    if (this.end(error)) this.#announce(error);
  }

  #slots(indices: number[]): Slot[] { return indices.map((i) => this.plan.slots[i]!); }

  #entryOf(name: string): E {
    return named('the plan has no entry', name, this.#runnables.entries);
  }

  /** Checks the options of a run. `slots` are the values to read. */
  protected options(name: string, given: RunOptions | null | undefined): { target: E; steps: number; slots: Slot[] | undefined } {
    this.check();
    const read = given?.read, steps = given?.steps ?? 1, target = this.#entryOf(name);
    checkOptions(name, given, 'read steps');
    if (steps !== 1) checkCount(`steps in a run of ${name}`, steps, 1, this.#runnables.maxSteps);
    return { target, steps, slots: read && this.#sources(read, target) };
  }

  /**
   * Checks the inputs for some steps of an entry, writes its scalars, and returns the uploads, which the next call sets
   * again. Nothing is kept unless all are valid. Inputs with `bind` also serve later runs, until replaced.
   */
  protected accept({ entry, uploads, rows, bound, stride }: Runnable, given: Inputs, steps: number, bind = false): Upload[] {
    const op = entry.name;
    for (const name in given) if (!uploads.some(({ slot }) => slot.name === name)) throw unknownName(`${op} has no input`, name, uploads.map(({ slot }) => slot.name), op);
    for (let k = 0; k < steps; k++) rows.set(bound, k * stride);
    for (const port of uploads) {
      const { slot } = port, value = given[slot.name];
      if (value === undefined) {
        port.from = port.bytes = undefined;
        if (!bind && !this.#bound.has(slot)) throw missing(op, slot);
      } else if (slot.role === 'input') {
        this.#set(op, port, value);
      } else {
        for (let k = 0; k < steps; k++) rows.set(scalarBytes(op, slot, value, k, bind ? 0 : steps), k * stride + slot.offset);
      }
    }
    if (!bind && !this.#bound.has(entry)) {
      for (const slot of this.#slots(entry.reads)) if (!this.#bound.has(slot)) throw missing(op, slot);
      this.#bound.add(entry);
      for (const slot of this.#slots(entry.sets)) this.#bound.add(slot);
    }
    if (bind) bound.set(rows.subarray(0, stride));
    for (const { slot } of uploads) if (given[slot.name] !== undefined) this.#bound[bind ? 'add' : 'delete'](slot);
    return uploads;
  }

  /** Checks a value and sets its effect. */
  #set(op: string, port: Upload, value: Input): Upload {
    const { slot, bytes } = port, tensor = value instanceof Tensor;
    port.from = tensor ? deviceInput(op, slot, value, this) : undefined;
    port.bytes = tensor ? undefined : hostBytes(op, slot, value, bytes);
    return port;
  }

  async bind(name: string, inputs: Inputs): Promise<void> {
    this.check();
    this.store(this.accept(this.#entryOf(name), inputs ?? {}, 1, true));
  }

  /** The location of a readable value: a persistent one, or an output of the last entry run. */
  #source(name: string, from = this.lastEntry): Slot {
    const outputs = this.#slots(from?.entry.outputs ?? []);
    const slot = this.#persistent.get(name) ?? outputs.find((output) => output.name === name);
    if (slot) return slot;
    const when = from ? `a run of ${from.entry.name}` : 'no run';
    throw unknownName(`after ${when} there is no value`, name, [...outputs.map((output) => output.name), ...this.#persistent.keys()]);
  }

  #sources(names: readonly string[], from?: E): Slot[] { return checkNames(names).map((name) => this.#source(name, from)); }

  async read(name: string): Promise<TensorData> { return (await this.readAll([name])).values[name]!; }

  async readAll(names: readonly string[]): Promise<Reading<any>> {
    this.check();
    return this.capture(this.#sources(names));
  }

  /** Sets parameters and states. */
  #setAll(uploads: Upload[]): void {
    this.store(uploads);
    for (const { slot } of uploads) this.#bound.add(slot);
  }

  async write(name: string, value: Input): Promise<void> {
    this.check();
    this.#setAll([this.#set('write', { slot: named('the plan has no parameter or state', name, this.#persistent) }, value)]);
  }

  async upload(tensor: HostTensor): Promise<Tensor> {
    this.check();
    checkHost('upload', 'the tensor', tensor);
    return this.tensor(tensor, hostBytes('upload', { ...tensor, name: 'the tensor', bytes: tensor.data?.byteLength }, tensor));
  }

  async keep(name: string): Promise<Tensor> {
    this.check();
    const slot = this.#source(name);
    return this.tensor(slot, slot);
  }

  async save(): Promise<Record<string, HostTensor>> {
    this.check();
    const slots = [...this.#persistent.values()], { step, values } = await this.capture(slots);
    this.savedAt = step;
    return byName(slots, ({ name, dtype, shape }) => ({ dtype, shape, data: values[name]! }));
  }

  async load(tensors: Readonly<Record<string, StoredTensor>>, options?: LoadOptions): Promise<void> {
    this.check();
    this.#setAll(checkLoad(this.#persistent.values(), tensors, options).map(([slot, tensor]) => this.#set('load', { slot }, tensor)));
  }

  close(): void {
    if (this.end(new RlxError('closed', 'the program was closed'))) this.release();
  }
}
