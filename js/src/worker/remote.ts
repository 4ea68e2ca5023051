// A program in a worker, with the same methods. A page loads this file when it asks for a worker.

import type { DeviceOptions, GPUProgramOptions } from '../gpu/device.js';
import { persistentOf, type Plan } from '../plan/plan.js';
import { checkLoad } from '../program/load.js';
import type { Device, LoadOptions, Program, Reading, Run, RunOptions } from '../program/program.js';
import type { Input, Inputs } from '../program/types.js';
import type { TensorData } from '../values/dtype.js';
import { asError, type ErrorKind, need, RlxError } from '../values/errors.js';
import { type HostTensor, type StoredTensor, Tensor } from '../values/tensor.js';
import { Caller } from './rpc.js';
import { startWorker } from './start.js';

export interface WorkerOptions {
  /** Runs the program in a worker: true for a new one, or a worker that runs this package's `worker.js`. */
  worker?: boolean | Worker;
}

/** The worker's description of a program that it opened. */
export interface RemoteInfo { plan: Plan; device: Device; fallbackReason?: string | undefined }
/** A tensor by its handle in the worker. */
export interface RemoteTensor { tensor: number; dtype: string; shape: readonly number[] }

/** Opens a program in a worker. The plan's bytes are copied to it. */
export async function openRemote(
  file: Uint8Array | ArrayBuffer,
  { worker, device, gpu, ...options }: WorkerOptions & DeviceOptions & GPUProgramOptions,
): Promise<Program> {
  if (device || gpu) throw new RlxError('device', 'a worker has a device of its own');
  need(worker === true || (worker as Worker).postMessage, 'attr', 'worker', 'true or a Worker', worker);
  const own = worker === true, thread = own ? startWorker() : worker as Worker; // one of our own ends with the program
  let kind: ErrorKind = 'device';
  const caller = new Caller(thread, (how) => new RlxError(kind, `the worker ${how}`));
  const end = () => own && thread.terminate();
  try {
    const info = await caller.call<RemoteInfo>('open', file, options);
    kind = 'lost'; // from now on a failure loses state
    return new RemoteProgram(caller, info, end);
  } catch (reason) {
    caller.end(asError(reason));
    end();
    throw reason;
  }
}

class RemoteProgram implements Program {
  declare readonly plan: Plan;
  declare readonly device: Device;
  declare fallbackReason?: string;
  readonly lost: Promise<RlxError>;
  steps = 0;
  readonly #caller: Caller;
  readonly #onClose: () => void;

  constructor(caller: Caller, info: RemoteInfo, onClose: () => void) {
    this.#caller = caller;
    this.#onClose = onClose;
    Object.assign(this, info);
    this.lost = new Promise((resolve) => {
      // The error, if any, answers the call; closing ends it too.
      this.#call('lost').catch((error: RlxError) => error.kind !== 'closed' && resolve(error));
    });
  }

  #call<T>(method: string, ...args: unknown[]): Promise<T> { return this.#caller.call<T>(method, ...args); }

  /** Tensors stay in the worker: only their handles are sent. */
  #pack(value: Input): unknown {
    return value instanceof Tensor ? { tensor: value.handleOf(this) } : value;
  }

  #packAll(inputs: Inputs | undefined): Record<string, unknown> {
    return Object.fromEntries(Object.entries(inputs ?? {}).map(([name, value]) => [name, this.#pack(value)]));
  }

  #unpack({ tensor, dtype, shape }: RemoteTensor): Tensor {
    const caller = this.#caller;
    return new Tensor({
      dtype, shape, owner: this, handle: tensor, data: () => caller.call('data', tensor), free: () => void caller.call('free', tensor).catch(() => {}),
    });
  }

  async run(entry: string, inputs?: Inputs, options?: RunOptions): Promise<Run<any>> {
    const { step, reading } = await this.#call<{ step: number; reading?: number }>('run', entry, this.#packAll(inputs), options);
    this.steps = step;
    if (reading === undefined) return { step } as Run<any>;
    const arriving = this.#call<Reading>('reading', reading);
    arriving.catch(() => {});
    return { step, reading: arriving };
  }

  async bind(entry: string, inputs: Inputs): Promise<void> { return this.#call('bind', entry, this.#packAll(inputs)); }
  async read(name: string): Promise<TensorData> { return this.#call('read', name); }
  async readAll(names: readonly string[]): Promise<Reading<any>> { return this.#call('readAll', names); }
  async write(name: string, value: Input): Promise<void> { return this.#call('write', name, this.#pack(value)); }
  async take(name: string, value: HostTensor): Promise<void> { return this.#caller.give('write', name, value); }
  async upload(tensor: HostTensor): Promise<Tensor> { return this.#unpack(await this.#call('upload', tensor)); }
  async keep(name: string): Promise<Tensor> { return this.#unpack(await this.#call('keep', name)); }
  async save(): Promise<Record<string, HostTensor>> { return this.#call('save'); }
  async load(tensors: Readonly<Record<string, StoredTensor>>, options?: LoadOptions): Promise<void> {
    const found = checkLoad(persistentOf(this.plan.slots), tensors, options);
    return this.#call('load', Object.fromEntries(found.map(([{ name }, tensor]) => [name, tensor])), options);
  }

  close(): void {
    this.#call('close').catch(() => {});
    this.#caller.end(new RlxError('closed', 'the program was closed'));
    this.#onClose();
  }
}
