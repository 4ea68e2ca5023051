// A session on a GPUDevice of this thread.

import { type Device, onLost } from './device.js';
import { checkType, deviceBytes, sizeOf, toDevice, type TensorData } from '../values/dtype.js';
import { asError, checkCount, noMore, RlxError, unknownName } from '../values/errors.js';
import { usage } from './flags.js';
import { Flight } from './flight.js';
import { checkDType, checkHost, checkNames, checkScalar, deviceInput, hostBytes, listed, missing, putScalar } from '../session/inputs.js';
import type { Plan, Slot } from '../plan/plan.js';
import { type Program, type ProgramEntry, watchErrors } from './program.js';
import { Recorder } from './recorder.js';
import type { HostTensor, Input, Inputs, Reading, Run, RunOptions, Session } from '../session/session.js';
import { type Capture, type ReadRequest, readRequest, type Source, StagingRing } from './staging.js';
import { Tensor } from '../values/tensor.js';

/** What a checked input does to the device. */
type Upload = { slot: Slot; bytes?: Uint8Array<ArrayBuffer>; from?: GPUBuffer };

/** Staging buffers begin no larger than the first, and become no larger than the second. */
const firstStaging = 1 << 20, largestStaging = 64 << 20;

// Firefox looks for finished work every 100 ms, unless there is a submission to make.
const needsNudge = /firefox/i.test(globalThis.navigator?.userAgent ?? '');

export class GPUSession implements Session {
  readonly plan: Plan;
  readonly deviceName: string;
  readonly lost: Promise<RlxError>;
  steps = 0;

  readonly #device: Device;
  readonly #program: Program;
  readonly #gpu: GPUDevice;
  readonly #ring: StagingRing;
  readonly #flight: Flight;
  readonly #recorder = new Recorder();
  /** Slots whose contents stand in for an input that is not given. */
  readonly #bound = new Set<Slot>();
  readonly #pool = new Map<number, GPUBuffer[]>();
  readonly #persistent: Map<string, Slot>;
  #error: RlxError | undefined;
  #announce!: (error: RlxError) => void;
  #lastEntry: ProgramEntry | undefined;
  #submissions = 0;
  #savedAt = 0;
  #nudging = false;
  readonly #forget: () => void;

  constructor(device: Device, plan: Plan, program: Program, inFlight: number, staging: number) {
    this.#device = device;
    this.#program = program;
    this.plan = plan;
    this.#gpu = device.gpu;
    this.deviceName = device.name;
    this.#flight = new Flight(inFlight);
    this.#persistent = new Map(plan.slots.filter(isPersistent).map((slot) => [slot.name, slot]));
    const { status } = plan;
    const outputBytes = plan.entries.reduce((most, { outputs }) => Math.max(most, outputs.reduce((sum, i) => sum + plan.slots[i]!.bytes, 0)), 1024);
    this.#ring = new StagingRing({
      gpu: this.#gpu,
      label: `${program.tag} staging`,
      places: Math.max(3, staging),
      bytes: Math.min(firstStaging, outputBytes),
      most: Math.min(largestStaging, Math.floor(this.#gpu.limits.maxBufferSize / 256) * 256),
      status: status && { buffer: program.buffers[status.buffer]!, status },
      onFree: () => this.#catchUp(),
      fatal: () => this.#fatal(),
    });
    this.lost = new Promise((resolve) => this.#announce = resolve);
    this.#gpu.addEventListener('uncapturederror', this.#onError);
    this.#forget = onLost(this.#gpu, (info) => this.#fail(lostError(info, this.steps - this.#savedAt)));
  }

  #fail(error: RlxError): void {
    if (this.#end(error)) this.#announce(error);
  }

  /** Rejects what is under way, and all calls to come. False if that happened before. */
  #end(error: RlxError): boolean {
    if (this.#error) return false;
    this.#error = error;
    this.#flight.close(error);
    this.#ring.close(error);
    return true;
  }

  /** On a device of somebody else, an error that mentions none of our objects is not ours. */
  readonly #onError = ({ error }: GPUUncapturedErrorEvent): void => {
    if (!this.#device.owned && !error.message.includes(this.#program.tag)) return;
    this.#fail(new RlxError(error.constructor.name === 'GPUOutOfMemoryError' ? 'memory' : 'gpu', error.message, { cause: error }));
  };

  /** The error that ended the session. News of a lost device may come after a failed call. */
  async #fatal(): Promise<RlxError | undefined> {
    if (!this.#error) await Promise.race([this.lost, new Promise((resolve) => setTimeout(resolve, 50))]);
    return this.#error;
  }

  #check(): void {
    if (this.#error) throw this.#error;
  }

  async run(name: string, inputs?: Inputs | null, options?: RunOptions | null): Promise<Run> {
    this.#check();
    const { read, steps = 1, ...rest } = options ?? {}, target = this.#entry(name);
    noMore(name, rest);
    checkCount(`the number of steps in one run of ${name}`, steps, 1, this.#program.maxSteps);
    const turn = this.#flight.enter();
    if (turn) {
      this.#nudge();
      await turn;
    }
    try {
      this.#check();
      // Outputs of entries share memory: what is to be read of another's goes before it is lost.
      while (target !== this.#lastEntry && this.#ring.postponed[0]) this.#carry(true);
      // Nothing is written before all is known to be right.
      const given = inputs ?? {}, uploads = this.#checkInputs(target, given, steps);
      const sources = read && this.#sources(read, target);
      this.#send(uploads);
      this.#fillRows(target, given, steps);
      for (const { slot } of uploads) this.#bound.delete(slot);
      const request = sources && readRequest(sources);
      const encode = () => this.#encode(target, uploads, steps, request);
      const step = target.proven ? encode() : await this.#prove(target, encode);
      void this.#gpu.queue.onSubmittedWorkDone().catch(() => {}).then(() => this.#flight.leave());
      return request ? { step, reading: request.promise } : { step };
    } catch (reason) {
      this.#flight.leave();
      throw reason;
    }
  }

  /** Makes the first run of an entry under the eyes of WebGPU's checks. */
  async #prove(target: ProgramEntry, encode: () => number): Promise<number> {
    const { value, error } = watchErrors(this.#gpu, target.entry.name, encode);
    const wrong = await error;
    if (wrong) this.#fail(wrong);
    this.#check();
    target.proven = true;
    return value;
  }

  /** One encoder, one pass, one submission. Returns the number of the last step. */
  #encode(target: ProgramEntry, uploads: Upload[], steps: number, request: ReadRequest | undefined): number {
    const encoder = this.#gpu.createCommandEncoder();
    this.#copy(encoder, uploads);
    for (let k = 0; k < steps; k++) this.#recorder.record(encoder, target.ops, k * target.stride);
    this.#recorder.end();
    this.steps += steps;
    this.#lastEntry = target;
    this.#submit(encoder, this.#ring.capture(encoder, false, request));
    return this.steps;
  }

  #submit(encoder: GPUCommandEncoder, capture?: Capture): void {
    this.#gpu.queue.submit([encoder.finish()]);
    this.#submissions++;
    if (!capture) return;
    capture.arrive(this.steps, this.#submissions);
    this.#nudge();
  }

  #entry(name: string): ProgramEntry {
    const found = this.#program.entries.get(name);
    if (!found) throw unknownName('the plan has no entry', name, this.#program.entries.keys());
    return found;
  }

  /** Checks inputs, all of them if they are for a run of some steps, and returns the tensors among them; nothing is written. */
  #checkInputs({ entry }: ProgramEntry, inputs: Inputs, steps?: number): Upload[] {
    const op = entry.name, known = [...entry.inputs, ...entry.scalars].map((i) => this.plan.slots[i]!);
    for (const name in inputs) {
      if (!known.some((slot) => slot.name === name)) throw unknownName(`${op} has no input`, name, known.map((slot) => slot.name), op);
    }
    const uploads: Upload[] = [];
    for (const slot of known) {
      const value = inputs[slot.name];
      if (value === undefined) {
        if (steps && !this.#bound.has(slot)) throw missing(op, slot);
      } else if (slot.role === 'input') {
        uploads.push(this.#checkInput(op, slot, value));
      } else {
        for (const one of steps && listed(op, slot, value, steps) || [value]) checkScalar(op, slot, one);
      }
    }
    return uploads;
  }

  #checkInput(op: string, slot: Slot, value: Input): Upload {
    return value instanceof Tensor
      ? { slot, from: deviceInput(op, slot, value, this) as GPUBuffer }
      : { slot, bytes: hostBytes(op, slot, value as Exclude<Input, Tensor>) };
  }

  /** Writes what comes from the host. */
  #send(uploads: Upload[]): void {
    for (const { slot, bytes } of uploads) {
      if (bytes && bytes.length > 0) this.#gpu.queue.writeBuffer(this.#program.buffers[slot.buffer]!, slot.offset, bytes);
    }
  }

  /** Records the copies of what is on the device. */
  #copy(encoder: GPUCommandEncoder, uploads: Upload[]): void {
    for (const { slot, from } of uploads) {
      if (from) encoder.copyBufferToBuffer(from, 0, this.#program.buffers[slot.buffer]!, slot.offset, slot.bytes);
    }
  }

  /** Does both, in a submission of its own. */
  #store(uploads: Upload[]): void {
    this.#send(uploads);
    if (!uploads.some(({ from }) => from)) return;
    const encoder = this.#gpu.createCommandEncoder();
    this.#copy(encoder, uploads);
    this.#submit(encoder);
  }

  /** Fills the rows of scalars, on the host and on the device. */
  #fillRows({ entry, rows, stride, uniforms }: ProgramEntry, inputs: Inputs, steps: number): void {
    for (const i of entry.scalars) {
      const slot = this.plan.slots[i]!, value = inputs[slot.name], bound = value === undefined;
      for (let k = 0; k < steps; k++) { // what is bound is in the first row
        if (bound) rows.setUint32(k * stride + slot.offset, rows.getUint32(slot.offset));
        else putScalar(slot, Array.isArray(value) ? value[k] : value, rows, k * stride);
      }
      if (!bound) this.#bound.delete(slot);
    }
    if (uniforms) this.#gpu.queue.writeBuffer(uniforms, 0, rows.buffer, 0, steps * stride);
  }

  async bind(name: string, inputs: Inputs): Promise<void> {
    this.#check();
    const target = this.#entry(name), uploads = this.#checkInputs(target, inputs ?? {});
    for (const i of target.entry.scalars) {
      const slot = this.plan.slots[i]!, value = inputs?.[slot.name];
      if (value === undefined) continue;
      putScalar(slot, value, target.rows, 0);
      this.#bound.add(slot);
    }
    this.#store(uploads);
    for (const { slot } of uploads) this.#bound.add(slot);
  }

  /** Where a readable value lies: a persistent one, or an output of the entry that ran last. */
  #source(name: string, from = this.#lastEntry): Source {
    const outputs = from?.entry.outputs.map((i) => this.plan.slots[i]!) ?? [];
    const slot = this.#persistent.get(name) ?? outputs.find((output) => output.name === name);
    if (!slot) {
      const when = from ? `a run of ${from.entry.name}` : 'no run';
      throw unknownName(`after ${when} there is no value`, name, [...outputs.map((output) => output.name), ...this.#persistent.keys()]);
    }
    const { dtype, shape, buffer, offset, bytes } = slot;
    return { name, dtype, shape, buffer: this.#program.buffers[buffer]!, offset, bytes };
  }

  #sources(names: readonly string[], from?: ProgramEntry): Source[] { return checkNames(names).map((name) => this.#source(name, from)); }

  async read(name: string): Promise<TensorData> { return (await this.readAll([name])).values[name]!; }

  async readAll(names: readonly string[]): Promise<Reading> {
    this.#check();
    return this.#capture(this.#sources(names));
  }

  #capture(sources: Source[]): Promise<Reading> {
    const request = readRequest(sources);
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
    if (this.#ring.postponed[0]) setTimeout(() => { if (!this.#error) this.#carry(false); }, 4);
  }

  #nudge(): void {
    if (!needsNudge || this.#nudging) return;
    this.#nudging = true;
    setTimeout(() => {
      this.#nudging = false;
      if (this.#error || (this.#ring.arriving.size === 0 && !this.#flight.waiting)) return;
      this.#gpu.queue.submit([]);
      this.#nudge();
    }, 2);
  }

  #stateSlot(name: string): Slot {
    const slot = this.#persistent.get(name);
    if (!slot) throw unknownName('the plan has no parameter or state', name, this.#persistent.keys());
    return slot;
  }

  async write(name: string, value: Input): Promise<void> {
    this.#check();
    this.#store([this.#checkInput('write', this.#stateSlot(name), value)]);
  }

  async upload(tensor: HostTensor): Promise<Tensor> {
    this.#check();
    checkHost('upload', 'what is given', tensor);
    const { dtype, shape, data } = tensor;
    checkType('the tensor', dtype, data);
    if (data.length !== sizeOf(shape)) {
      throw new RlxError('shape', `a tensor of shape [${shape}] has ${sizeOf(shape)} elements, given with ${data.length}`, { shape: [data.length], expected: shape });
    }
    const made = this.#tensor(dtype, shape, deviceBytes(dtype, shape));
    this.#gpu.queue.writeBuffer(made.handleOf(this) as GPUBuffer, 0, toDevice(dtype, data));
    return made;
  }

  async keep(name: string): Promise<Tensor> {
    this.#check();
    const { dtype, shape, buffer, offset, bytes } = this.#source(name);
    const made = this.#tensor(dtype, shape, bytes), encoder = this.#gpu.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, offset, made.handleOf(this) as GPUBuffer, 0, bytes);
    this.#submit(encoder);
    return made;
  }

  /** A tensor in a buffer from the pool, whose buffers have powers of two as sizes. */
  #tensor(dtype: string, shape: readonly number[], bytes: number): Tensor {
    const { maxBufferSize } = this.#gpu.limits;
    if (bytes > maxBufferSize) {
      throw new RlxError('limit', `a tensor of ${bytes} bytes is over maxBufferSize ${maxBufferSize}`, { shape });
    }
    const size = Math.min(2 ** Math.ceil(Math.log2(Math.max(bytes, 256))), maxBufferSize);
    const idle = this.#pool.get(size) ?? [];
    this.#pool.set(size, idle);
    let buffer: GPUBuffer;
    try {
      buffer = idle.pop() ?? this.#gpu.createBuffer({ label: `${this.#program.tag} tensor`, size, usage: usage.storage | usage.copySrc | usage.copyDst });
    } catch (cause) {
      throw asError(cause);
    }
    const free = () => void (this.#error ? buffer.destroy() : idle.push(buffer));
    const data = async () => {
      this.#check();
      return (await this.#capture([{ name: '', dtype, shape, buffer, offset: 0, bytes }])).values['']!;
    };
    return new Tensor({ dtype, shape, owner: this, handle: buffer, data, free });
  }

  async save(): Promise<Record<string, HostTensor>> {
    this.#check();
    const { step, values } = await this.#capture(this.#sources([...this.#persistent.keys()]));
    this.#savedAt = step;
    return Object.fromEntries([...this.#persistent].map(([name, { dtype, shape }]) => [name, { dtype, shape, data: values[name]! }]));
  }

  async load(tensors: Readonly<Record<string, HostTensor>>): Promise<void> {
    this.#check();
    this.#store(Object.entries(tensors ?? {}).map(([name, tensor]) => {
      const slot = this.#stateSlot(name);
      checkHost('load', name, tensor);
      const { dtype, shape, data } = tensor;
      checkDType('load', slot, dtype);
      return this.#checkInput('load', slot, { data, shape });
    }));
  }

  close(): void {
    if (!this.#end(new RlxError('closed', 'the session was closed'))) return;
    this.#forget();
    this.#gpu.removeEventListener('uncapturederror', this.#onError);
    for (const idle of this.#pool.values()) for (const buffer of idle) buffer.destroy();
    this.#program.destroy();
    if (this.#device.owned) this.#gpu.destroy();
  }
}

const lostError = ({ reason, message }: GPUDeviceLostInfo, steps: number): RlxError =>
  new RlxError('lost', `the device was lost (${reason}): ${message}; last saved ${steps} steps ago`, { steps });

const isPersistent = ({ role }: Slot): boolean => role === 'param' || role === 'state';

/** Rethrows what a lost device makes of calls, as what it is. */
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
