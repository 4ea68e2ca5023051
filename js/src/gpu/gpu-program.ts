// A program on a GPUDevice of this thread.

import { allSteps, type Plan, type Slot } from '../plan/plan.js';
import { BaseProgram, type Upload } from '../program/base.js';
import type { Device, Reading, Run, RunOptions } from '../program/program.js';
import type { Inputs } from '../program/types.js';
import { asError, RlxError } from '../values/errors.js';
import { Tensor, type TensorType } from '../values/tensor.js';
import { onLost, type OpenDevice } from './device.js';
import { type Executable, type ExecutableEntry, inErrorScopes } from './executable.js';
import * as flags from './flags.js';
import { SubmissionLimiter } from './limiter.js';
import { Recorder } from './recorder.js';
import { type Capture, type ReadRequest, readRequest, type Source, StagingRing } from './staging.js';

// Firefox polls for completed work every 100 ms, unless there is a submission.
const needsNudge = /firefox/i.test(globalThis.navigator?.userAgent ?? '');

/** Whether a plan has loops without a trip count, whose condition the host reads. */
const hasDynamicLoops = ({ entries }: Plan): boolean => allSteps(entries).some((step) => step.kind === 'repeat' && step.condition);

export class GPUProgram extends BaseProgram<ExecutableEntry> {
  readonly device: Device;

  readonly #owned: boolean;
  readonly #executable: Executable;
  readonly #gpu: GPUDevice;
  readonly #ring: StagingRing;
  readonly #limiter: SubmissionLimiter;
  readonly #recorder: Recorder;
  readonly #pool = new Map<number, GPUBuffer[]>();
  #submissions = 0;
  #nudging = false;
  readonly #stopListening: () => void;

  constructor({ gpu, owned, description }: OpenDevice, plan: Plan, executable: Executable, inFlight: number | undefined, staging: number) {
    super(plan, executable);
    this.#owned = owned;
    this.#executable = executable;
    this.#gpu = gpu;
    this.device = { name: 'webgpu', description };
    this.#limiter = new SubmissionLimiter(hasDynamicLoops(plan) ? 1 : inFlight);
    this.#recorder = new Recorder(executable);
    this.#ring = new StagingRing(this.#gpu, executable, Math.max(3, staging), { onFree: () => this.#submitPostponed(), fatal: () => this.#fatal() });
    this.#gpu.addEventListener('uncapturederror', this.#onError);
    this.#stopListening = onLost(this.#gpu, (info) => this.fail(lostError(info, this.steps - this.savedAt)));
  }

  protected override end(error: RlxError): boolean {
    if (!super.end(error)) return false;
    this.#limiter.close(error);
    this.#ring.close(error);
    return true;
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
      // Outputs of entries share memory: pending reads of another entry go first.
      while (target !== this.lastEntry && this.#ring.postponed[0]) this.#submitRead(true);
      const uploads = this.accept(target, inputs ?? {}, steps);
      this.#writeInputs(uploads);
      this.#writeScalars(target, steps);
      const request = slots && this.#request(slots);
      const encode = () => this.#encode(target, uploads, steps, request);
      const step = await (target.validated ? encode() : this.#validateRun(target, encode));
      void this.#gpu.queue.onSubmittedWorkDone().catch(() => {}).then(() => {
        this.#limiter.release();
        if (!this.error) this.#executable.replaceDrafts(target);
      });
      return { step, reading: request?.promise };
    } catch (reason) {
      this.#limiter.release();
      throw reason;
    }
  }

  /** Makes the first run of an entry in WebGPU's error scopes. */
  async #validateRun(target: ExecutableEntry, encode: () => Promise<number>): Promise<number> {
    try {
      const step = await inErrorScopes(this.#gpu, target.entry.name, encode);
      this.check();
      target.validated = true;
      return step;
    } catch (reason) {
      const error = asError(reason);
      if (error.kind !== 'index') this.fail(error); // an index out of range is a fault of the inputs
      throw error;
    }
  }

  /**
   * Encodes steps: one encoder, one pass, one submission. Loops without a trip count need several, and wait for
   * the device. Returns the number of the last step.
   */
  async #encode(target: ExecutableEntry, uploads: Upload[], steps: number, request: ReadRequest | undefined): Promise<number> {
    const recorder = this.#recorder;
    recorder.encoder = this.#gpu.createCommandEncoder();
    this.#copyInputs(recorder.encoder, uploads);
    for (let k = 0; k < steps; k++) {
      for (const { buffer, offset } of recorder.record(target.entry.steps, target.dispatches, k * target.stride)) {
        const readback = readRequest([{ name: '', dtype: 'u32', shape: [], buffer: this.#executable.buffers[buffer]!, offset, bytes: 4 }]);
        this.#flush(readback);
        recorder.condition = (await readback.promise).values['']![0] as number;
        recorder.encoder = this.#gpu.createCommandEncoder();
      }
    }
    this.steps += steps;
    this.lastEntry = target;
    this.#flush(request);
    return this.steps;
  }

  /** Submits the recorded commands, followed by a read. */
  #flush(request: ReadRequest | undefined): void {
    const { encoder } = this.#recorder;
    this.#recorder.end();
    this.#submit(encoder, this.#ring.capture(encoder, false, request));
  }

  #submit(encoder: GPUCommandEncoder, capture?: Capture): void {
    this.#gpu.queue.submit([encoder.finish()]);
    this.#submissions++;
    if (!capture) return;
    capture.arrive(this.steps, this.#submissions);
    this.#nudge();
  }

  /** Writes inputs from the host. */
  #writeInputs(uploads: Upload[]): void {
    for (const { slot, bytes } of uploads) {
      if (bytes?.length) this.#gpu.queue.writeBuffer(this.#executable.buffers[slot.buffer]!, slot.offset, bytes);
    }
  }

  /** Writes the scalars of some steps, unless the device has those of a single step already: it would wait for the copy. */
  #writeScalars(target: ExecutableEntry, steps: number): void {
    const { uniforms, rows, stride, written } = target;
    if (!uniforms || steps === 1 && written?.every((byte, i) => byte === rows[i])) return;
    this.#gpu.queue.writeBuffer(uniforms, 0, rows, 0, steps * stride);
    target.written = rows.slice(0, stride);
  }

  /** Records copies of inputs on the device. */
  #copyInputs(encoder: GPUCommandEncoder, uploads: Upload[]): void {
    for (const { slot, from } of uploads) {
      if (from) encoder.copyBufferToBuffer(from as GPUBuffer, 0, this.#executable.buffers[slot.buffer]!, slot.offset, slot.bytes);
    }
  }

  /** Writes and copies inputs, in a separate submission. */
  protected store(uploads: Upload[]): void {
    this.#writeInputs(uploads);
    if (!uploads.some(({ from }) => from)) return;
    const encoder = this.#gpu.createCommandEncoder();
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
    const encoder = this.#gpu.createCommandEncoder(), capture = this.#ring.capture(encoder, now, request);
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
      this.#gpu.queue.submit([]);
      this.#nudge();
    }, 2);
  }

  /** A tensor in a buffer from the pool. Sizes of its buffers are powers of two. */
  protected tensor({ dtype, shape }: TensorType, from: Uint8Array<ArrayBuffer> | Slot): Tensor {
    const bytes = from instanceof Uint8Array ? from.length : from.bytes;
    const { maxBufferSize } = this.#gpu.limits;
    if (bytes > maxBufferSize) {
      throw new RlxError('limit', `a tensor of ${bytes} bytes is over maxBufferSize ${maxBufferSize}`, { shape });
    }
    const size = Math.min(2 ** Math.ceil(Math.log2(Math.max(bytes, 256))), maxBufferSize);
    const idle = this.#pool.get(size) ?? [];
    this.#pool.set(size, idle);
    let buffer: GPUBuffer;
    try {
      buffer = idle.pop() ?? this.#gpu.createBuffer({ label: `${this.#executable.tag} tensor`, size, usage: flags.storage | flags.copySrc | flags.copyDst });
    } catch (cause) {
      throw asError(cause);
    }
    const free = () => void (this.error ? buffer.destroy() : idle.push(buffer));
    const data = async () => {
      this.check();
      return (await this.#arrival(readRequest([{ name: '', dtype, shape, buffer, offset: 0, bytes }]))).values['']!;
    };
    if (from instanceof Uint8Array) {
      this.#gpu.queue.writeBuffer(buffer, 0, from);
    } else {
      const encoder = this.#gpu.createCommandEncoder();
      encoder.copyBufferToBuffer(this.#executable.buffers[from.buffer]!, from.offset, buffer, 0, bytes);
      this.#submit(encoder);
    }
    return new Tensor({ dtype, shape, owner: this, handle: buffer, data, free });
  }

  protected release(): void {
    this.#stopListening();
    this.#gpu.removeEventListener('uncapturederror', this.#onError);
    for (const idle of this.#pool.values()) for (const buffer of idle) buffer.destroy();
    this.#executable.destroy();
    if (this.#owned) this.#gpu.destroy();
  }
}

const lostError = ({ reason, message }: GPUDeviceLostInfo, steps: number): RlxError =>
  new RlxError('lost', `the device was lost (${reason}): ${message}; last saved ${steps} steps ago`, { steps });

/** Rethrows errors of calls on a lost device as its loss. */
export async function unlessLost<T>(gpu: GPUDevice, calls: () => Promise<T>): Promise<T> {
  let forget!: () => void;
  const lost = new Promise<never>((_, reject) => {
    forget = onLost(gpu, (info) => reject(lostError(info, 0)));
  });
  try {
    return await Promise.race([lost, calls()]);
  } catch (reason) {
    throw asError(reason);
  } finally {
    forget();
  }
}
