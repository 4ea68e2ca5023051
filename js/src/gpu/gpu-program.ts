// A program on a GPUDevice of this thread.

import type { Plan, Slot } from '../plan/plan.js';
import { BaseProgram, type Upload } from '../program/base.js';
import type { Device, Reading, Run, RunOptions } from '../program/program.js';
import type { Inputs } from '../program/types.js';
import { asError, RlxError } from '../values/errors.js';
import { Tensor, type TensorType } from '../values/tensor.js';
import { onLost, type OpenDevice } from './device.js';
import type { Uploads } from '../host/uploads.js';
import { type Executable, type ExecutableEntry, inErrorScopes } from './executable.js';
import * as flags from './flags.js';
import { SubmissionLimiter } from './limiter.js';
import { Recorder } from './recorder.js';
import { type Capture, type ReadRequest, readRequest, type Source, StagingRing } from './staging.js';

// Firefox polls for completed work every 100 ms, unless there is a submission.
const needsNudge = /firefox/i.test(globalThis.navigator?.userAgent as string);

/**
 * The size of inputs from which on they go by mapped buffers, if nothing else asks for those (those of 400 KB are as fast
 * without), and runs do not wait for others: the copies of one run are the work of the next one's computation.
 */
const mappedBytes = 1 << 20;

/**
 * With this many submissions in flight, runs wait until `joinedRuns` of them are one submission, no more are admitted, or one
 * in flight is done: the device has work until then, and a submission costs more than a small run.
 */
const busy = 2, joinedRuns = 8;

/** Whether one of the inputs from the host has `min` bytes or more. */
const hasBytes = (uploads: Upload[], min: number): boolean => uploads.some(({ bytes }) => bytes && bytes.length >= min);

/** Runs of an entry that are recorded for one submission, and the rows of scalars that they use. */
interface Joined { target: ExecutableEntry; runs: number; rows: number; changed?: boolean }

export class GPUProgram extends BaseProgram<ExecutableEntry> {
  readonly device: Device;

  readonly #owned: boolean;
  readonly #executable: Executable;
  /** The device that it computes on, for what writes its inputs. */
  readonly gpu: GPUDevice;
  readonly #ring: StagingRing;
  readonly #limiter: SubmissionLimiter;
  readonly #recorder: Recorder;
  readonly #pool = new Map<number, GPUBuffer[]>();
  /** Mapped buffers for inputs, once their code is loaded; null before. */
  #uploads?: Uploads | null;
  /** Whether runs may wait for others: not if their programs share states, whose runs have an order. */
  readonly #joins: boolean;
  /** The code of loops without a trip count, if there are any. */
  readonly #loops: typeof import('./loops.js') | undefined;
  #joined: Joined | undefined;
  /** The number of submissions of runs that are not done. */
  #inFlight = 0;
  #nudging = false;
  readonly #stopListening: () => void;

  constructor({ gpu, owned, description }: OpenDevice, plan: Plan, executable: Executable, inFlight: number | undefined, staging: number | undefined, loops: typeof import('./loops.js') | undefined) {
    super(plan, executable);
    this.#loops = loops;
    this.#owned = owned;
    this.#executable = executable;
    this.gpu = gpu;
    this.device = { name: 'webgpu', description };
    this.#joins = !loops && !plan.buffers.some(({ given }) => given);
    this.#limiter = new SubmissionLimiter(loops ? 1 : inFlight);
    this.#recorder = new Recorder(executable);
    this.#ring = new StagingRing(executable, staging, { onFree: () => this.#submitPostponed(), fatal: () => this.#fatal() });
    gpu.addEventListener('uncapturederror', this.#onError);
    this.#stopListening = onLost(gpu, (info) => this.fail(lostError(info, this.steps - this.savedAt)));
  }

  protected override end(error: RlxError): boolean {
    this.#limiter.close(error); // a second time there is nothing to close
    this.#ring.close(error);
    return super.end(error);
  }

  /** On a shared device, an error that names none of this program's objects is another's. */
  readonly #onError = ({ error }: GPUUncapturedErrorEvent): void => {
    if (!this.#owned && !error.message.includes(this.#executable.tag)) return;
    this.fail(new RlxError(error.constructor.name === 'GPUOutOfMemoryError' ? 'memory' : 'gpu', error.message, { cause: error }));
  };

  /** The error that ended the program. The loss of a device may be reported after a failed call. */
  async #fatal(): Promise<RlxError | undefined> {
    if (!this.error) await Promise.race([this.lost, new Promise((resolve) => setTimeout(resolve, 50))]);
    return this.error;
  }

  async run(name: string, inputs?: Inputs | null, options?: RunOptions | null): Promise<Run<any>> {
    const { target, steps, slots } = this.options(name, options);
    const admitted = this.#limiter.acquire();
    if (admitted) {
      this.#nudge();
      await admitted;
    }
    try {
      this.check();
      if (this.#joined && (target !== this.#joined.target || this.#joined.rows + steps > this.#executable.maxSteps)) this.#submitRuns();
      // Outputs of entries share memory: pending reads of another entry go first.
      while (target !== this.lastEntry && this.#ring.postponed[0]) this.#submitRead(true);
      const uploads = this.accept(target, inputs ?? {}, steps);
      const request = slots && this.#request(slots);
      const step = target.validated ? this.#encode(target, uploads, steps, request) as number : await this.#validateRun(target, uploads, steps, request);
      return { step, reading: request?.promise };
    } catch (reason) {
      this.#limiter.release(1);
      throw reason;
    }
  }

  /** Makes the first run of an entry, or any with loops without a trip count, in WebGPU's error scopes. */
  async #validateRun(...run: [target: ExecutableEntry, uploads: Upload[], steps: number, request: ReadRequest | undefined]): Promise<number> {
    try {
      const step = await inErrorScopes(this.gpu, run[0].entry.name, async () => this.#encode(...run));
      this.check();
      run[0].validated = !this.#loops;
      return step;
    } catch (reason) {
      const error = asError(reason);
      if (error.kind !== 'index') this.fail(error); // an index out of range is a fault of the inputs
      throw error;
    }
  }

  /**
   * Records steps after those of earlier runs: one encoder, and one pass unless inputs are copied. Submits them unless the
   * run may wait for others. Loops without a trip count need several submissions, and wait for the device: then it returns
   * a promise of the number of the last step.
   */
  #encode(target: ExecutableEntry, uploads: Upload[], steps: number, request: ReadRequest | undefined): number | Promise<number> {
    const small = !request && this.#joins && target.validated && this.#inFlight >= busy && !hasBytes(uploads, mappedBytes);
    const waits = this.#stage(uploads, small || this.#joined ? 1 : mappedBytes) && small;
    const recorder = this.#recorder, joined: Joined = this.#joined ?? { target, runs: 0, rows: 0 };
    if (!joined.runs++) recorder.encoder = this.gpu.createCommandEncoder();
    this.#writeInputs(uploads);
    this.#copyInputs(recorder.encoder, uploads);
    const row = this.#addRows(joined, steps);
    if (this.#loops) return this.#loops.record(this.#executable, recorder, target, row, steps, (read) => this.#flush(joined, read)).then(() => this.#encoded(joined, steps, waits, request));
    for (let k = 0; k < steps; k++) {
      recorder.at[0] = (row + k) * target.stride;
      recorder.record(target.entry.steps, target.dispatches);
    }
    return this.#encoded(joined, steps, waits, request);
  }

  /** Counts the steps of a recorded run, and submits it unless it `waits`. Returns the number of its last step. */
  #encoded(joined: Joined, steps: number, waits: boolean, request: ReadRequest | undefined): number {
    this.#joined = joined;
    this.steps += steps;
    this.lastEntry = joined.target;
    if (!waits || joined.runs >= joinedRuns || this.#limiter.full) this.#submitRuns(request);
    return this.steps;
  }

  /** Adds the rows of a run's scalars and returns the first's number: the last row's, which may be on the device, if it is the same. */
  #addRows(joined: Joined, steps: number): number {
    const { rows, stride, pending } = joined.target, last = Math.max(joined.rows - 1, 0);
    let changed = steps > 1;
    for (let i = 0; i < stride; i++) changed ||= rows[i] !== pending[last * stride + i];
    if (!changed) return (joined.rows = last + 1) - 1;
    for (let i = 0; i < steps * stride; i++) pending[joined.rows * stride + i] = rows[i]!;
    joined.changed = true;
    return (joined.rows += steps) - steps;
  }

  /** Submits the runs that wait for others, followed by a read. */
  #submitRuns(request?: ReadRequest): void {
    const joined = this.#joined;
    if (!joined || this.error) return;
    this.#joined = undefined;
    this.#flush(joined, request);
    this.#inFlight++;
    const done = () => {
      this.#inFlight--;
      this.#submitRuns(); // the device has no other work
      this.#limiter.release(joined.runs);
      if (!this.error) this.#executable.replaceDrafts(joined.target);
    };
    void this.gpu.queue.onSubmittedWorkDone().then(done, done);
  }

  /** Submits the recorded commands, followed by a read, and writes rows of scalars that the device does not have: it would wait for the copy. */
  #flush({ target: { uniforms, pending, stride }, rows, changed }: Joined, request: ReadRequest | undefined): void {
    const { encoder } = this.#recorder;
    if (uniforms && changed) this.gpu.queue.writeBuffer(uniforms, 0, pending, 0, rows * stride);
    this.#recorder.end();
    this.#submit(encoder, this.#ring.capture(encoder, false, request));
  }

  #submit(encoder: GPUCommandEncoder, capture?: Capture): void {
    this.#submitRuns();
    this.#uploads?.unmap();
    this.gpu.queue.submit([encoder.finish()]);
    this.#uploads?.map();
    if (!capture) return;
    capture(this.steps);
    this.#nudge();
  }

  /**
   * Copies inputs of `min` bytes and more to mapped buffers, from which the submission copies them. If these do not fit it
   * submits earlier runs and returns false: the queue has to write all.
   */
  #stage(uploads: Upload[], min: number): boolean {
    if (!hasBytes(uploads, min)) return true;
    if (this.#uploads === undefined) {
      this.#uploads = null;
      import('../host/uploads.js').then((code) => {
        this.#uploads = new code.Uploads((size) => this.#executable.buffer('upload', size, flags.mapWrite | flags.copySrc, true));
      }, () => {});
    }
    if (this.#uploads?.put(uploads, min)) return true;
    this.#submitRuns();
    return false;
  }

  /** Writes the inputs from the host that are not in mapped buffers. */
  #writeInputs(uploads: Upload[]): void {
    for (const { slot, bytes, from } of uploads) {
      if (bytes?.length && !from) this.gpu.queue.writeBuffer(this.#executable.buffers[slot.buffer]!, slot.offset, bytes);
    }
  }

  /** Records copies of inputs on the device. */
  #copyInputs(encoder: GPUCommandEncoder, uploads: Upload[]): void {
    for (const { slot, bytes, from, at } of uploads) {
      if (!from) continue;
      this.#recorder.end();
      encoder.copyBufferToBuffer(from as GPUBuffer, bytes ? at! : 0, this.#executable.buffers[slot.buffer]!, slot.offset, slot.bytes);
    }
  }

  /** Writes and copies inputs, in a separate submission. */
  protected store(uploads: Upload[]): void {
    this.#submitRuns();
    this.#writeInputs(uploads);
    if (!uploads.some(({ from }) => from)) return;
    const encoder = this.gpu.createCommandEncoder();
    this.#copyInputs(encoder, uploads);
    this.#submit(encoder);
  }

  #request(slots: Slot[]): ReadRequest {
    return readRequest(slots.map((slot): Source => ({ ...slot, buffer: this.#executable.buffers[slot.buffer]! })));
  }

  protected capture(slots: Slot[]): Promise<Reading> { return this.#arrival(this.#request(slots)); }

  #arrival(request: ReadRequest): Promise<Reading> {
    this.#submitRead(false, request);
    return request.promise;
  }

  /** Makes a submission for a read, or for the oldest that was postponed, unless it has to wait. */
  #submitRead(now: boolean, request?: ReadRequest): void {
    const encoder = this.gpu.createCommandEncoder(), capture = this.#ring.capture(encoder, now, request);
    if (capture) this.#submit(encoder, capture);
  }

  /** A staging buffer is free: unless a run follows soon, a postponed read gets a separate submission. */
  #submitPostponed(): void {
    if (!this.#ring.postponed[0]) return;
    setTimeout(() => {
      if (this.#limiter.waiting) this.#submitPostponed();
      else if (!this.error) this.#submitRead(false);
    }, 4);
  }

  #nudge(): void {
    if (!needsNudge || this.#nudging) return;
    this.#nudging = true;
    setTimeout(() => {
      this.#nudging = false;
      if (this.error || (!this.#ring.arriving.size && !this.#limiter.waiting)) return;
      this.gpu.queue.submit([]);
      this.#nudge();
    }, 2);
  }

  /** A tensor in a buffer from the pool. Sizes of its buffers are powers of two. */
  protected tensor({ dtype, shape }: TensorType, from: Uint8Array<ArrayBuffer> | Slot): Tensor {
    const bytes = from instanceof Uint8Array ? from.length : from.bytes;
    const { maxBufferSize } = this.gpu.limits;
    if (bytes > maxBufferSize) {
      throw new RlxError('limit', `a tensor of ${bytes} bytes is over maxBufferSize ${maxBufferSize}`, { shape });
    }
    const size = Math.min(2 ** Math.ceil(Math.log2(Math.max(bytes, 256))), maxBufferSize);
    const idle = this.#pool.get(size) ?? [];
    this.#pool.set(size, idle);
    let buffer: GPUBuffer;
    try {
      buffer = idle.pop() ?? this.gpu.createBuffer({ label: `${this.#executable.tag} tensor`, size, usage: flags.storage | flags.copySrc | flags.copyDst });
    } catch (cause) {
      throw asError(cause);
    }
    const free = () => void (this.error ? buffer.destroy() : idle.push(buffer));
    const data = async () => {
      this.check();
      return (await this.#arrival(readRequest([{ name: '', dtype, shape, buffer, offset: 0, bytes }]))).values['']!;
    };
    if (from instanceof Uint8Array) {
      this.#submitRuns(); // the last tensor in this buffer may be an input of theirs
      this.gpu.queue.writeBuffer(buffer, 0, from);
    } else {
      const encoder = this.gpu.createCommandEncoder();
      encoder.copyBufferToBuffer(this.#executable.buffers[from.buffer]!, from.offset, buffer, 0, bytes);
      this.#submit(encoder);
    }
    return new Tensor({ dtype, shape, owner: this, handle: buffer, data, free });
  }

  protected release(): void {
    this.#stopListening();
    this.gpu.removeEventListener('uncapturederror', this.#onError);
    for (const idle of this.#pool.values()) for (const buffer of idle) buffer.destroy();
    this.#executable.destroy();
    if (this.#owned) this.gpu.destroy();
  }
}

const lostError = ({ reason, message }: GPUDeviceLostInfo, steps: number): RlxError =>
  new RlxError('lost', `the device was lost (${reason}): ${message}; last saved ${steps} steps ago`, { steps });

/** The result of calls on a device, unless that is lost. */
export function unlessLost<T>(gpu: GPUDevice, calls: Promise<T>): Promise<T> {
  let forget!: () => void;
  const lost = new Promise<never>((_, reject) => {
    forget = onLost(gpu, (info) => reject(lostError(info, 0)));
  });
  return Promise.race([lost, calls]).finally(forget);
}
