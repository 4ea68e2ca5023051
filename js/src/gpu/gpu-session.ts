// A session on a GPUDevice of this thread.

import { type Device, onLost } from './device.js';
import { asError, RlxError } from '../values/errors.js';
import * as flags from './flags.js';
import { Flight } from './flight.js';
import { allSteps, type Plan, type Slot } from '../plan/plan.js';
import { type Program, type ProgramEntry, watched } from './program.js';
import { PlanSession, type Upload } from '../program/plan-session.js';
import { Recorder } from './recorder.js';
import type { Reading, Run, RunOptions } from '../program/session.js';
import { type Capture, type ReadRequest, readRequest, type Source, StagingRing } from './staging.js';
import { Tensor, type TensorType } from '../values/tensor.js';
import type { Inputs } from '../program/types.js';

// Firefox looks for finished work every 100 ms, unless there is a submission to make.
const needsNudge = /firefox/i.test(globalThis.navigator?.userAgent ?? '');

/** Whether runs of a plan must wait for a result of the device. */
const looks = ({ entries }: Plan): boolean => allSteps(entries).some((step) => step.kind === 'repeat' && step.going);

export class GPUSession extends PlanSession<ProgramEntry> {
  readonly deviceName: string;

  readonly #device: Device;
  readonly #program: Program;
  readonly #gpu: GPUDevice;
  readonly #ring: StagingRing;
  readonly #flight: Flight;
  readonly #recorder: Recorder;
  readonly #pool = new Map<number, GPUBuffer[]>();
  #submissions = 0;
  #nudging = false;
  readonly #forget: () => void;

  constructor(device: Device, plan: Plan, program: Program, inFlight: number | undefined, staging: number) {
    super(plan, program);
    this.#device = device;
    this.#program = program;
    this.#gpu = device.gpu;
    this.deviceName = device.name;
    this.#flight = new Flight(looks(plan) ? 1 : inFlight);
    this.#recorder = new Recorder(program);
    this.#ring = new StagingRing(this.#gpu, program, Math.max(3, staging), { onFree: () => this.#catchUp(), fatal: () => this.#fatal() });
    this.#gpu.addEventListener('uncapturederror', this.#onError);
    this.#forget = onLost(this.#gpu, (info) => this.fail(lostError(info, this.steps - this.savedAt)));
  }

  protected override end(error: RlxError): boolean {
    if (!super.end(error)) return false;
    this.#flight.close(error);
    this.#ring.close(error);
    return true;
  }

  /** On a device of somebody else, an error that mentions none of our objects is not ours. */
  readonly #onError = ({ error }: GPUUncapturedErrorEvent): void => {
    if (!this.#device.owned && !error.message.includes(this.#program.tag)) return;
    this.fail(new RlxError(error.constructor.name === 'GPUOutOfMemoryError' ? 'memory' : 'gpu', error.message, { cause: error }));
  };

  /** The error that ended the session. News of a lost device may come after a failed call. */
  async #fatal(): Promise<RlxError | undefined> {
    if (!this.error) await Promise.race([this.lost, new Promise((resolve) => setTimeout(resolve, 50))]);
    return this.error;
  }

  async run(name: string, inputs?: Inputs | null, options?: RunOptions | null): Promise<Run> {
    const { target, steps, slots } = this.options(name, options);
    const turn = this.#flight.enter();
    if (turn) {
      this.#nudge();
      await turn;
    }
    try {
      this.check();
      // Outputs of entries share memory: pending reads of another entry go first.
      while (target !== this.lastEntry && this.#ring.postponed[0]) this.#carry(true);
      const uploads = this.accept(target, inputs ?? {}, steps);
      this.#send(uploads);
      this.#sendScalars(target, steps);
      const request = slots && this.#request(slots);
      const encode = () => this.#encode(target, uploads, steps, request);
      const step = await (target.proven ? encode() : this.#prove(target, encode));
      void this.#gpu.queue.onSubmittedWorkDone().catch(() => {}).then(() => {
        this.#flight.leave();
        if (!this.error) this.#program.replaceDrafts(target);
      });
      return { step, reading: request?.promise };
    } catch (reason) {
      this.#flight.leave();
      throw reason;
    }
  }

  /** Makes the first run of an entry under the eyes of WebGPU's checks. */
  async #prove(target: ProgramEntry, encode: () => Promise<number>): Promise<number> {
    try {
      const step = await watched(this.#gpu, target.entry.name, encode);
      this.check();
      target.proven = true;
      return step;
    } catch (reason) {
      const error = asError(reason);
      if (error.kind !== 'index') this.fail(error); // an index out of range is of the inputs
      throw error;
    }
  }

  /**
   * One encoder, one pass, one submission, but that loops without a bound need more, and wait for the
   * device. Returns the number of the last step.
   */
  async #encode(target: ProgramEntry, uploads: Upload[], steps: number, request: ReadRequest | undefined): Promise<number> {
    const recorder = this.#recorder;
    recorder.encoder = this.#gpu.createCommandEncoder();
    this.#copy(recorder.encoder, uploads);
    for (let k = 0; k < steps; k++) {
      for (const { buffer, offset } of recorder.record(target.entry.steps, target.dispatches, k * target.stride)) {
        const look = readRequest([{ name: '', dtype: 'u32', shape: [], buffer: this.#program.buffers[buffer]!, offset, bytes: 4 }]);
        this.#flush(look);
        recorder.going = (await look.promise).values['']![0] as number;
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
  #send(uploads: Upload[]): void {
    for (const { slot, bytes } of uploads) {
      if (bytes?.length) this.#gpu.queue.writeBuffer(this.#program.buffers[slot.buffer]!, slot.offset, bytes);
    }
  }

  /** Writes the scalars of some steps, but those of one step that are there already: the device would wait for the copy. */
  #sendScalars(target: ProgramEntry, steps: number): void {
    const { uniforms, rows, stride, sent } = target;
    if (!uniforms || steps === 1 && sent?.every((byte, i) => byte === rows[i])) return;
    this.#gpu.queue.writeBuffer(uniforms, 0, rows, 0, steps * stride);
    target.sent = rows.slice(0, stride);
  }

  /** Records copies of inputs on the device. */
  #copy(encoder: GPUCommandEncoder, uploads: Upload[]): void {
    for (const { slot, from } of uploads) {
      if (from) encoder.copyBufferToBuffer(from as GPUBuffer, 0, this.#program.buffers[slot.buffer]!, slot.offset, slot.bytes);
    }
  }

  /** Does both, in a submission of its own. */
  protected store(uploads: Upload[]): void {
    this.#send(uploads);
    if (!uploads.some(({ from }) => from)) return;
    const encoder = this.#gpu.createCommandEncoder();
    this.#copy(encoder, uploads);
    this.#submit(encoder);
  }

  #request(slots: Slot[]): ReadRequest {
    return readRequest(slots.map((slot): Source => ({ ...slot, buffer: this.#program.buffers[slot.buffer]! })));
  }

  protected capture(slots: Slot[]): Promise<Reading> { return this.#arrival(this.#request(slots)); }

  #arrival(request: ReadRequest): Promise<Reading> {
    this.#carry(false, request);
    return request.promise;
  }

  /** Makes a submission for a read, or for the oldest that was postponed, unless it has to wait. */
  #carry(now: boolean, request?: ReadRequest): void {
    const encoder = this.#gpu.createCommandEncoder(), capture = this.#ring.capture(encoder, now, request);
    if (capture) this.#submit(encoder, capture);
  }

  /** A staging buffer is free: if no run comes along to carry a postponed read, it goes alone. */
  #catchUp(): void {
    if (!this.#ring.postponed[0]) return;
    setTimeout(() => {
      if (this.#flight.waiting) this.#catchUp();
      else if (!this.error) this.#carry(false);
    }, 4);
  }

  #nudge(): void {
    if (!needsNudge || this.#nudging) return;
    this.#nudging = true;
    setTimeout(() => {
      this.#nudging = false;
      if (this.error || (!this.#ring.arriving.size && !this.#flight.waiting)) return;
      this.#gpu.queue.submit([]);
      this.#nudge();
    }, 2);
  }

  /** A tensor in a buffer from the pool, whose buffers have powers of two as sizes. */
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
      buffer = idle.pop() ?? this.#gpu.createBuffer({ label: `${this.#program.tag} tensor`, size, usage: flags.storage | flags.copySrc | flags.copyDst });
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
      encoder.copyBufferToBuffer(this.#program.buffers[from.buffer]!, from.offset, buffer, 0, bytes);
      this.#submit(encoder);
    }
    return new Tensor({ dtype, shape, owner: this, handle: buffer, data, free });
  }

  protected release(): void {
    this.#forget();
    this.#gpu.removeEventListener('uncapturederror', this.#onError);
    for (const idle of this.#pool.values()) for (const buffer of idle) buffer.destroy();
    this.#program.destroy();
    if (this.#device.owned) this.#gpu.destroy();
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
