// The interface of sessions, on a GPU in this thread or in a worker.

import type { TensorData } from '../values/dtype.js';
import type { RlxError } from '../values/errors.js';
import type { Plan } from '../plan/plan.js';
import type { HostTensor, StoredTensor, Tensor } from '../values/tensor.js';
import type { EntryTypes, Input, InputsOf, Name, ValuesOf } from './types.js';

/** How {@link Session.load} handles tensors and parameters whose names do not match. */
export interface LoadOptions {
  /** Ignores tensors that match no parameter or state. By default they are an error. */
  allowExtra?: boolean;
  /** Keeps parameters without a tensor. By default they are an error. */
  allowMissing?: boolean;
}

export interface RunOptions<V extends string = string> {
  /** Outputs, parameters and states to read as they are after this run. The copy is part of the run's submission. */
  read?: readonly V[];
  /** How many times to run the entry, in one submission. Scalars may differ from one to the next. */
  steps?: number;
}

/** Values as they were after a step. */
export interface Reading {
  /** How many steps had been run. */
  step: number;
  values: Record<string, TensorData>;
}

/** A run that was handed to the device. */
export interface Run {
  /** How many steps have been run, with this one. */
  step: number;
  /**
   * What was asked for with `read`. It arrives when the device is done; nothing waits for it.
   * If all staging buffers are in use the values are those of a later step, which it names.
   */
  reading?: Promise<Reading> | undefined;
}

/**
 * A plan on a device, which may know the types of its entries: its buffers, its pipelines, its state. Every method rejects with an
 * {@link RlxError}; once {@link Session.lost} has resolved, all of them reject with that error.
 */
export interface Session<E extends EntryTypes = any> {
  /** The plan, of its variants the one that runs. */
  readonly plan: Plan;
  /** The device's own name. */
  readonly deviceName: string;
  /** Why the session fell back to the CPU, if it did. */
  fallbackReason?: string;
  /** How many steps have been run, of all entries. */
  readonly steps: number;
  /** Resolves when the session ends by anything but `close`: a lost device (kind `lost`), an error of the device. */
  readonly lost: Promise<RlxError>;

  /**
   * Runs an entry. Resolves when its submission is made, and waits only while three others are
   * under way. Every input must be given, unless it is bound; given arrays may be changed once
   * the promise has resolved. Runs happen in the order of the calls.
   */
  run<N extends keyof E & string, V extends string>(entry: N, inputs?: InputsOf<E[N]>, options?: RunOptions<Name<V, ValuesOf<E>>>): Promise<Run>;
  /** Uploads inputs that runs of the entry then need not give, until one does. */
  bind<N extends keyof E & string>(entry: N, inputs: InputsOf<E[N]>): Promise<void>;
  /** The value of an output of the last run, of a parameter or of a state, as of now. */
  read<V extends string>(name: Name<V, ValuesOf<E>>): Promise<TensorData>;
  /** Several values of the same moment, in one transfer. */
  readAll<V extends string>(names: readonly Name<V, ValuesOf<E>>[]): Promise<Reading>;
  /** Sets a parameter or a state. */
  write<V extends string>(name: Name<V, ValuesOf<E>>, value: Input): Promise<void>;
  /** Puts a tensor on the device, to be an input as often as you like. */
  upload(tensor: HostTensor): Promise<Tensor>;
  /** A copy, on the device, of an output, parameter or state as of now. */
  keep<V extends string>(name: Name<V, ValuesOf<E>>): Promise<Tensor>;
  /** All parameters and states. Steps lost with a device are counted from here. */
  save(): Promise<Record<string, HostTensor>>;
  /**
   * Sets parameters and states, as {@link Session.save} gave them or a file has them; states that are
   * not given stay as they are. Every parameter must be given, and nothing else, unless the options say
   * otherwise. Tensors that were read from a file are widened, f16 to f32 say, where no value changes.
   */
  load(tensors: Readonly<Record<string, StoredTensor>>, options?: LoadOptions): Promise<void>;
  /** Frees all memory. Calls in progress reject. */
  close(): void;
}
