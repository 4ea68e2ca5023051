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

/** The effect of a checked input: bytes to write, which may wait in a mapped buffer, or the program's handle of a tensor. */
export interface Upload { slot: Slot; bytes?: Uint8Array<ArrayBuffer>; place?: { buffer: unknown; offset: number }; from?: unknown }

/** An entry with the rows of its scalars, one for each step of a run; bound scalars are in the first. */
export interface Runnable { entry: Entry; rows: Uint8Array<ArrayBuffer>; stride: number }

/** The entries of a plan, for runs of up to `maxSteps` steps. */
export interface Runnables<E> { readonly entries: ReadonlyMap<string, E>; readonly maxSteps: number }

/** Makes an entry's rows of scalars, for runs of up to `maxSteps` steps. */
export function withRows(entry: Entry, maxSteps: number): Runnable {
  const stride = roundUp(entry.uniformBytes, rowBytes);
  return { entry, stride, rows: new Uint8Array(stride * maxSteps) };
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
  readonly #entries: ReadonlyMap<string, E>;
  readonly #maxSteps: number;
  readonly #persistent: Map<string, Slot>;
  /** The names that need no value any more: bound inputs, parameters with a value, and complete entries. */
  readonly #bound = new Set<Slot | Entry>();
  /** The inputs and scalars of entries, by name. */
  readonly #inputs = new Map<Entry, Map<string, Slot>>();
  #announce!: (error: RlxError) => void;

  constructor(plan: Plan, { entries, maxSteps }: Runnables<E>) {
    this.plan = plan;
    this.#entries = entries;
    this.#maxSteps = maxSteps;
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

  #slots(...indices: number[][]): Slot[] { return indices.flat().map((i) => this.plan.slots[i]!); }

  #entryOf(name: string): E {
    return named('the plan has no entry', name, this.#entries);
  }

  /** Checks the options of a run. `slots` are the values to read. */
  protected options(name: string, given: RunOptions | null | undefined): { target: E; steps: number; slots: Slot[] | undefined } {
    this.check();
    const read = given?.read, steps = given?.steps ?? 1, target = this.#entryOf(name);
    checkOptions(name, given, 'read steps');
    if (steps !== 1) checkCount(`steps in a run of ${name}`, steps, 1, this.#maxSteps);
    return { target, steps, slots: read && this.#sources(read, target) };
  }

  /**
   * Checks the inputs for some steps of an entry, writes its scalars, and returns the uploads. Nothing is written
   * unless all are valid. Inputs with `bind` also serve later runs, until replaced.
   */
  protected accept({ entry, rows, stride }: Runnable, given: Inputs, steps: number, bind = false): Upload[] {
    const op = entry.name;
    let inputs = this.#inputs.get(entry);
    if (!inputs) this.#inputs.set(entry, inputs = new Map(this.#slots(entry.inputs, entry.scalars).map((slot) => [slot.name, slot])));
    for (const name in given) if (!inputs.has(name)) throw unknownName(`${op} has no input`, name, inputs.keys(), op);
    const uploads: Upload[] = [], scalars: [offset: number, values: Uint8Array[]][] = [];
    for (const slot of inputs.values()) {
      const value = given[slot.name];
      if (value === undefined) {
        if (!bind && !this.#bound.has(slot)) throw missing(op, slot);
      } else if (slot.role === 'input') {
        uploads.push(this.#checkInput(op, slot, value));
      } else {
        scalars.push([slot.offset, scalarBytes(op, slot, value, bind ? undefined : steps)]);
      }
    }
    if (!bind && !this.#bound.has(entry)) {
      for (const slot of this.#slots(entry.reads)) if (!this.#bound.has(slot)) throw missing(op, slot);
      this.#bound.add(entry);
      for (const slot of this.#slots(entry.sets)) this.#bound.add(slot);
    }
    for (let k = 0; k < steps; k++) {
      rows.copyWithin(k * stride, 0, stride); // bound scalars are in the first row
      for (const [offset, values] of scalars) rows.set(values[k % values.length]!, k * stride + offset);
    }
    for (const slot of inputs.values()) if (given[slot.name] !== undefined) this.#bound[bind ? 'add' : 'delete'](slot);
    return uploads;
  }

  #checkInput(op: string, slot: Slot, value: Input): Upload {
    return value instanceof Tensor
      ? { slot, from: deviceInput(op, slot, value, this) }
      : { slot, bytes: hostBytes(op, slot, value as Exclude<Input, Tensor>) };
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
    this.#setAll([this.#checkInput('write', named('the plan has no parameter or state', name, this.#persistent), value)]);
  }

  async upload(tensor: HostTensor): Promise<Tensor> {
    this.check();
    checkHost('upload', 'the tensor', tensor);
    const { dtype, shape, data } = tensor;
    return this.tensor(tensor, hostBytes('upload', { name: 'the tensor', dtype, shape, bytes: data?.byteLength }, tensor));
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
    this.#setAll(checkLoad(this.#persistent.values(), tensors, options).map(([slot, tensor]) => ({ slot, bytes: hostBytes('load', slot, tensor) })));
  }

  close(): void {
    if (this.end(new RlxError('closed', 'the program was closed'))) this.release();
  }
}
