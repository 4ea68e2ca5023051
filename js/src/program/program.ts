// The interface of programs, on a GPU in this thread or in a worker.

import type { Plan } from '../plan/plan.js';
import type { TensorData } from '../values/dtype.js';
import type { RlxError } from '../values/errors.js';
import type { HostTensor, StoredTensor, Tensor } from '../values/tensor.js';
import type { DataByName, DataOf, EntryTypes, Input, InputsOf, Name, ValuesOf } from './types.js';

/** How {@link Program.load} handles tensors and parameters whose names do not match. */
export interface LoadOptions {
  /** Ignores tensors that match no parameter or state. By default they are an error. */
  allowExtra?: boolean;
  /** Keeps parameters without a tensor. By default they are an error. */
  allowMissing?: boolean;
}

export interface RunOptions<V extends string = string> {
  /** Outputs, parameters and states to read after this run. The copy is part of the run's submission. */
  read?: readonly V[];
  /** The number of runs of the entry, in one submission. 1 if not given. Scalars may differ between them. */
  steps?: number;
}

/** Values as they were after a step. */
export interface Reading<V = Record<string, TensorData>> {
  /** The number of steps that had been run. */
  step: number;
  /** The elements by name. */
  values: V;
}

/** A run that was submitted. R is the type of its reading. */
export interface Run<R = Promise<Reading> | undefined> {
  /** The number of steps that have been run, with this one. */
  step: number;
  /**
   * The values requested with `read`; undefined without. It resolves when the device is done. If
   * all staging buffers are in use the values are those of a later step, with its number.
   */
  reading: R;
}

/** The reading of a run that reads the values V of a program: undefined for none. */
export type ReadingOf<E extends EntryTypes, V extends string> = [V] extends [never] ? undefined : Promise<Reading<DataByName<E, V>>>;

/** A device that programs run on. */
export interface Device {
  /** The kind of device, as the Go package names it: `webgpu` or `cpu`. */
  readonly name: 'webgpu' | 'cpu';
  /** The name that the adapter or the processor reports. */
  readonly description: string;
}

/**
 * A compiled module and its memory on a device,
 * with its buffers, pipelines and states; E has the types of its entries. Every method rejects with an
 * {@link RlxError}; once {@link Program.lost} has resolved, all of them reject with that error.
 */
export interface Program<E extends EntryTypes = any> {
  /** The plan, or the variant of it that runs. */
  readonly plan: Plan;
  /** The device that it runs on. */
  readonly device: Device;
  /** Why the program fell back to the CPU, if it did. */
  fallbackReason?: string;
  /** The number of steps that have been run, of all entries. */
  readonly steps: number;
  /** Resolves when the program ends by anything but `close`: a lost device (kind `lost`), an error of the device. */
  readonly lost: Promise<RlxError>;

  /**
   * Runs an entry. Resolves when its commands are recorded, and waits only while the maximal number of runs is in
   * flight (option `inFlight`). On a GPU that has other work small runs share a submission. Every input must be given unless it is bound. The caller may change arrays once
   * the promise has resolved. Runs happen in the order of the calls.
   */
  run<N extends keyof E & string, V extends string = never>(entry: N, inputs?: InputsOf<E[N]>, options?: RunOptions<Name<V, ValuesOf<E>>>): Promise<Run<ReadingOf<E, V>>>;
  /** Uploads inputs for later runs of the entry, until a run passes another value. */
  bind<N extends keyof E & string>(entry: N, inputs: InputsOf<E[N]>): Promise<void>;
  /** The value of an output of the last run, of a parameter or of a state, as of now. */
  read<V extends string>(name: Name<V, ValuesOf<E>>): Promise<DataOf<E, V>>;
  /** Several values of the same moment, in one transfer. */
  readAll<V extends string>(names: readonly Name<V, ValuesOf<E>>[]): Promise<Reading<DataByName<E, V>>>;
  /** Sets a parameter or a state. */
  write<V extends string>(name: Name<V, ValuesOf<E>>, value: Input): Promise<void>;
  /** Does as `write`, with memory that the caller uses no more; of programs in a worker, to which it moves. @internal */
  take?(name: string, value: HostTensor): Promise<void>;
  /** Copies a tensor to the device, for use as an input. */
  upload(tensor: HostTensor): Promise<Tensor>;
  /** A copy, on the device, of an output, parameter or state as of now. */
  keep<V extends string>(name: Name<V, ValuesOf<E>>): Promise<Tensor>;
  /** All parameters and states. Steps lost with a device are counted from here. */
  save(): Promise<Record<string, HostTensor>>;
  /**
   * Sets parameters and states, from {@link Program.save} or a file; missing states do not change.
   * Every parameter must be present, and no other tensor, unless the options say otherwise.
   * Tensors that were read from a file are widened, for example f16 to f32, if no value changes.
   */
  load(tensors: Readonly<Record<string, StoredTensor>>, options?: LoadOptions): Promise<void>;
  /** Frees the program's memory. Calls in progress reject. */
  close(): void;
  /** Set if the program goes on on another device when its own is lost (the option `recover`). @internal */
  readonly recovery?: Recovery;
}

/** The place of a snapshot in a training. @internal */
export interface Position {
  /** The trainer, and its steps so far. */
  trainer: { steps: number };
  steps: number;
  /** The loop that made it, and what it knew. */
  owner?: object;
  state?: unknown;
}

/** Keeps snapshots of a program's states, and opens it again after a loss. @internal */
export interface Recovery {
  /** The program on the device of this moment, which rejects with kind `lost` until another one is there. */
  readonly current: Program;
  /** Whether a training that has made some steps is to take a snapshot. */
  due(steps: number): boolean;
  /** Copies all parameters and states to host memory, between two steps. */
  take(position: Position): Promise<void>;
  /** Waits until there is a program in place of a lost one, and returns the position with which it begins. Rejects if there will be none. */
  back(from: Program): Promise<Position>;
  /** Says that a training begins or ends. */
  training(trainer: Position['trainer'], begins: boolean): void;
  /** The run of a trainer, which goes on after losses. */
  run(trainer: any, options: any): Promise<any>;
}
