// Where programs that share parameters and states run: one GPU with common buffers, or the CPU, where values are copied.

import * as flags from '../gpu/flags.js';
import type { Plan, Slot } from '../plan/plan.js';
import type { Program } from '../program/program.js';
import { openLocal, type ProgramOptions } from '../runtime/open.js';
import { RlxError } from '../values/errors.js';

/** The options of programs in this thread. */
export type LocalOptions = Omit<ProgramOptions, 'worker'>;

/** Opens programs that have parameters and states in common. */
export interface Host {
  readonly fallbackReason?: string;
  open(plan: Plan): Promise<Program>;
  /** Copies the newest parameters and states to a program, before it reads them. */
  update(program: Program): Promise<void>;
  /** Notes that a program changed parameters or states. */
  changed(program: Program): void;
  /** Ends the use of a program before it is closed. Another one must have the newest values, too. */
  forget(program: Program): void;
  close(): void;
}

/** Programs on one GPU, which share their state buffers. */
export class HostOnGPU implements Host {
  readonly #gpu: GPUDevice;
  readonly #owned: boolean;
  readonly #options: LocalOptions;
  /** The state buffers, and the offsets of parameters and states in them by the first plan. */
  #states: GPUBuffer[] | undefined;
  #layout = '';

  constructor(gpu: GPUDevice, owned: boolean, options: LocalOptions) {
    this.#gpu = gpu;
    this.#owned = owned;
    this.#options = options;
  }

  async open(plan: Plan): Promise<Program> {
    const numbers = stateBuffers(plan), layout = layoutOf(plan, numbers);
    this.#states ??= await this.#make(plan, numbers);
    this.#layout ||= layout;
    if (layout !== this.#layout) throw new RlxError('internal', `plan ${plan.name}: states lie at ${layout} instead of ${this.#layout}`);
    const buffers = plan.buffers.map((one, i) => one.kind === 'state' ? { ...one, given: this.#states![numbers.indexOf(i)]! } : one);
    return openLocal({ ...plan, buffers }, { ...this.#options, on: 'gpu', device: this.#gpu });
  }

  async #make(plan: Plan, numbers: readonly number[]): Promise<GPUBuffer[]> {
    this.#gpu.pushErrorScope('out-of-memory');
    const made = numbers.map((i) => this.#gpu.createBuffer({ label: `${plan.name} states ${i}`, size: plan.buffers[i]!.bytes, usage: flags.storage | flags.indirect | flags.copySrc | flags.copyDst }));
    const error = await this.#gpu.popErrorScope();
    if (!error) return made;
    for (const buffer of made) buffer.destroy();
    throw new RlxError('memory', `${plan.name}: ${error.message}`, { op: plan.name, cause: error });
  }

  async update(): Promise<void> {}
  changed(): void {}
  forget(): void {}

  close(): void {
    for (const buffer of this.#states ?? []) buffer.destroy();
    if (this.#owned) this.#gpu.destroy();
  }
}

/** Whether a slot persists between runs. */
export const isState = ({ role }: Slot): boolean => role === 'param' || role === 'state';

/** The buffers of a plan's parameters and states. */
export const stateBuffers = ({ buffers }: Plan): number[] => buffers.flatMap(({ kind }, i) => kind === 'state' ? [i] : []);

/** The offsets of a plan's parameters and states: plans with equal layouts may share buffers. */
export const layoutOf = ({ buffers, slots }: Plan, numbers: readonly number[]): string => JSON.stringify([
  numbers.map((i) => buffers[i]!.bytes), slots.filter(isState).map(({ name, dtype, shape, buffer, offset }) => [name, dtype, shape, numbers.indexOf(buffer), offset]).sort(),
]);

/** Programs on the CPU in this thread, each with its own memory: before a program runs, values that another changed are copied to it. */
export class HostOnCPU implements Host {
  readonly fallbackReason?: string;
  readonly #options: LocalOptions;
  #newest: Program | undefined;
  /** The programs that have the newest values. */
  readonly #fresh = new Set<Program>();

  constructor({ device: _, gpu: __, ...options }: LocalOptions, fallbackReason?: string) {
    this.#options = options;
    if (fallbackReason !== undefined) this.fallbackReason = fallbackReason;
  }

  async open(plan: Plan): Promise<Program> {
    const made = await openLocal(plan, { ...this.#options, on: 'cpu' });
    if (!this.#newest) this.changed(made);
    return made;
  }

  async update(program: Program): Promise<void> {
    if (this.#fresh.has(program)) return;
    const values = await this.#newest!.save(); // each program has all of them
    await program.load(values);
    this.#fresh.add(program);
  }

  changed(program: Program): void {
    this.#fresh.clear();
    this.#fresh.add(this.#newest = program);
  }

  forget(program: Program): void {
    this.#fresh.delete(program);
    if (this.#newest === program) [this.#newest] = this.#fresh; // there is one: the first program was updated
  }

  close(): void { this.#fresh.clear(); }
}
