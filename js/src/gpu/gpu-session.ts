// A session on a GPUDevice of this thread.

import type { Device } from './device.js';
import { checkType, deviceBytes, sizeOf, toDevice, type TensorData } from '../values/dtype.js';
import { asError, RlxError, unknownName } from '../values/errors.js';
import { usage } from './flags.js';
import { Flight } from './flight.js';
import { deviceInput, hostBytes, putScalar } from '../session/inputs.js';
import type { Plan, Slot } from '../plan/plan.js';
import { type Program, type ProgramEntry, watchErrors } from './program.js';
import { Recorder } from './recorder.js';
import type { HostTensor, Input, Inputs, Reading, Run, RunOptions, Session } from '../session/session.js';
import { type Capture, type ReadRequest, readRequest, type Source, StagingRing } from './staging.js';
import { Tensor } from '../values/tensor.js';

/** How a session deals with the device. */
export interface GPUSessionOptions {
  /** How many submissions may be under way before `run` waits. 3 if not given. */
  inFlight?: number;
  /** How many staging buffers reads go through, at least 3. */
  staging?: number;
}

/** What a checked input does to the device. */
type Upload = { slot: Slot; bytes?: Uint8Array<ArrayBuffer>; from?: GPUBuffer };

/** Staging buffers begin no larger than this, and transfers of many values are cut into parts of this size. */
const largestStaging = 1 << 20, largestTransfer = 64 << 20;

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

  constructor(device: Device, plan: Plan, program: Program, options: GPUSessionOptions = {}) {
    this.#device = device;
    this.#program = program;
    const { inFlight = 3, staging = 4 } = options;
    this.plan = plan;
    this.#gpu = device.gpu;
    this.deviceName = device.name;
    this.#flight = new Flight(inFlight);
    this.#persistent = new Map(plan.slots.filter(isPersistent).map((slot) => [slot.name, slot]));
    const { status } = plan;
    const outputBytes = plan.entries.map(({ outputs }) => outputs.reduce((sum, i) => sum + plan.slots[i]!.bytes, 0));
    this.#ring = new StagingRing({
      gpu: this.#gpu,
      places: Math.max(3, staging),
      bytes: Math.min(largestStaging, Math.max(...outputBytes, 1024)),
      status: status && { buffer: program.buffers[status.buffer]!, status },
      onFree: () => this.#catchUp(),
      fatal: () => this.#fatal(),
    });
    this.lost = new Promise((resolve) => this.#announce = resolve);
    this.#gpu.addEventListener('uncapturederror', this.#onError);
    void this.#gpu.lost.then(({ reason, message }) => {
      const steps = this.steps - this.#savedAt, gone = `${steps} steps since the state was last saved are gone`;
      this.#fail(new RlxError('lost', `the device was lost (${reason}): ${message || 'no reason given'}; ${gone}`, { steps }));
    });
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
    if (!this.#device.owned && !error.message.includes('rlx')) return;
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

  async run(name: string, inputs: Inputs = {}, { read, steps = 1 }: RunOptions = {}): Promise<Run> {
    this.#check();
    const target = this.#entry(name);
    const { maxSteps } = this.#program;
    if (!Number.isInteger(steps) || steps < 1 || steps > maxSteps) {
      throw new RlxError('limit', `${name}: ${steps} steps in one run are not 1 to ${maxSteps}`, { op: name });
    }
    const turn = this.#flight.enter();
    if (turn) {
      this.#nudge();
      await turn;
    }
    try {
      this.#check();
      const uploads = this.#checkInputs(target, inputs, true);
      const row = this.#fillRows(target, inputs, steps);
      const sources = read?.map((output) => this.#source(output, target));
      for (const upload of uploads) this.#send(upload);
      if (row > 0) this.#gpu.queue.writeBuffer(target.uniforms!, 0, target.rows.buffer, 0, row);
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
    for (const { slot, from } of uploads) {
      if (from) encoder.copyBufferToBuffer(from, 0, this.#program.buffers[slot.buffer]!, slot.offset, slot.bytes);
    }
    for (let k = 0; k < steps; k++) this.#recorder.record(encoder, target.ops, k * target.stride);
    this.#recorder.end();
    this.steps += steps;
    this.#lastEntry = target;
    this.#submit(encoder, this.#ring.capture(encoder, request));
    return this.steps;
  }

  #submit(encoder: GPUCommandEncoder, capture?: Capture): void {
    this.#gpu.queue.submit([encoder.finish()]);
    this.#submissions++;
    capture?.arrive(this.steps, this.#submissions);
    if (capture) this.#nudge();
  }

  #entry(name: string): ProgramEntry {
    const found = this.#program.entries.get(name);
    if (!found) throw unknownName('the plan has no entry', name, this.#program.entries.keys());
    return found;
  }

  /** Checks the tensors among the inputs; nothing is written yet. */
  #checkInputs({ entry }: ProgramEntry, inputs: Inputs, all: boolean): Upload[] {
    const op = entry.name, known = [...entry.inputs, ...entry.scalars].map((i) => this.plan.slots[i]!);
    for (const name in inputs) {
      if (!known.some((slot) => slot.name === name)) throw unknownName(`${op} has no input`, name, known.map((slot) => slot.name), op);
    }
    const uploads: Upload[] = [];
    for (const slot of known) {
      const value = inputs[slot.name];
      if (value === undefined) {
        if (all && !this.#bound.has(slot)) throw new RlxError('name', `${op}: input ${slot.name} is missing`, { op, name: slot.name });
      } else if (slot.role === 'input') {
        uploads.push(this.#checkInput(op, slot, value));
      }
    }
    return uploads;
  }

  #checkInput(op: string, slot: Slot, value: Input): Upload {
    return value instanceof Tensor
      ? { slot, from: deviceInput(op, slot, value, this) as GPUBuffer }
      : { slot, bytes: hostBytes(op, slot, value as Exclude<Input, Tensor>) };
  }

  #send({ slot, bytes }: Upload): void {
    if (bytes && bytes.length > 0) this.#gpu.queue.writeBuffer(this.#program.buffers[slot.buffer]!, slot.offset, bytes);
  }

  /** Fills the host's rows of scalars, and returns how many bytes are to be written. */
  #fillRows({ entry, rows, stride }: ProgramEntry, inputs: Inputs, steps: number): number {
    for (const i of entry.scalars) {
      const slot = this.plan.slots[i]!, value = inputs[slot.name];
      const list = Array.isArray(value) ? value : undefined;
      if (list && list.length !== steps) {
        const place = { op: entry.name, name: slot.name, shape: [list.length], expected: [steps] };
        throw new RlxError('shape', `${entry.name}: ${slot.name} has ${list.length} values for ${steps} steps`, place);
      }
      if (value === undefined) { // bound: the first row has it
        for (let k = 1; k < steps; k++) rows.setUint32(k * stride + slot.offset, rows.getUint32(slot.offset));
      } else {
        for (let k = 0; k < steps; k++) putScalar(entry.name, slot, list ? list[k] : value, rows, k * stride);
        this.#bound.delete(slot);
      }
    }
    return steps * stride;
  }

  async bind(name: string, inputs: Inputs): Promise<void> {
    this.#check();
    const target = this.#entry(name);
    const uploads = this.#checkInputs(target, inputs, false);
    for (const i of target.entry.scalars) {
      const slot = this.plan.slots[i]!, value = inputs[slot.name];
      if (value === undefined) continue;
      putScalar(name, slot, value, target.rows, 0);
      this.#bound.add(slot);
    }
    const encoder = this.#gpu.createCommandEncoder();
    for (const upload of uploads) {
      this.#send(upload);
      if (upload.from) encoder.copyBufferToBuffer(upload.from, 0, this.#program.buffers[upload.slot.buffer]!, upload.slot.offset, upload.slot.bytes);
      this.#bound.add(upload.slot);
    }
    if (uploads.some(({ from }) => from)) this.#submit(encoder);
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

  async read(name: string): Promise<TensorData> { return (await this.readAll([name])).values[name]!; }

  async readAll(names: readonly string[]): Promise<Reading> {
    this.#check();
    return this.#capture(names.map((name) => this.#source(name)));
  }

  #capture(sources: Source[]): Promise<Reading> {
    const request = readRequest(sources), encoder = this.#gpu.createCommandEncoder();
    const capture = this.#ring.capture(encoder, request);
    if (capture) this.#submit(encoder, capture);
    return request.promise;
  }

  /** A staging buffer is free: if no run comes along to carry a postponed read, it goes alone. */
  #catchUp(): void {
    if (this.#ring.postponed.length > 0) {
      setTimeout(() => {
        if (this.#error) return;
        const encoder = this.#gpu.createCommandEncoder(), capture = this.#ring.capture(encoder);
        if (capture) this.#submit(encoder, capture);
      }, 4);
    }
  }

  #nudge(): void {
    if (!needsNudge || this.#nudging) return;
    this.#nudging = true;
    setTimeout(() => {
      this.#nudging = false;
      if (this.#error || (this.#ring.arriving === 0 && !this.#flight.waiting)) return;
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
    const upload = this.#checkInput('write', this.#stateSlot(name), value);
    this.#send(upload);
    if (!upload.from) return;
    const encoder = this.#gpu.createCommandEncoder(), { buffer, offset, bytes } = upload.slot;
    encoder.copyBufferToBuffer(upload.from, 0, this.#program.buffers[buffer]!, offset, bytes);
    this.#submit(encoder);
  }

  async upload({ dtype, shape, data }: HostTensor): Promise<Tensor> {
    this.#check();
    checkType('the tensor', dtype, data);
    if (data.length !== sizeOf(shape)) {
      const place = { shape: [data.length], expected: shape };
      throw new RlxError('shape', `a tensor of shape [${shape}] has ${sizeOf(shape)} elements, given with ${data.length}`, place);
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
    const size = 2 ** Math.ceil(Math.log2(Math.max(bytes, 256)));
    const idle = this.#pool.get(size) ?? [];
    this.#pool.set(size, idle);
    const buffer = idle.pop() ?? this.#gpu.createBuffer({ label: 'rlx tensor', size, usage: usage.storage | usage.copySrc | usage.copyDst });
    const free = () => void (this.#error ? buffer.destroy() : idle.push(buffer));
    const data = async () => {
      this.#check();
      return (await this.#capture([{ name: '', dtype, shape, buffer, offset: 0, bytes }])).values['']!;
    };
    return new Tensor({ dtype, shape, owner: this, handle: buffer, data, free });
  }

  async save(): Promise<Record<string, HostTensor>> {
    this.#check();
    const parts: Promise<Reading>[] = [];
    let sources: Source[] = [], bytes = 0;
    const flush = () => sources.length > 0 && parts.push(this.#capture(sources));
    for (const name of this.#persistent.keys()) {
      const source = this.#source(name);
      if (bytes + source.bytes > largestTransfer) {
        flush();
        sources = [], bytes = 0;
      }
      sources.push(source);
      bytes += source.bytes;
    }
    flush();
    const step = this.steps, values: Record<string, TensorData> = Object.assign({}, ...(await Promise.all(parts)).map((part) => part.values));
    this.#savedAt = step;
    return Object.fromEntries([...this.#persistent].map(([name, { dtype, shape }]) => [name, { dtype, shape, data: values[name]! }]));
  }

  async load(tensors: Readonly<Record<string, HostTensor>>): Promise<void> {
    this.#check();
    const uploads = Object.entries(tensors).map(([name, { dtype, shape, data }]) => {
      const slot = this.#stateSlot(name);
      if (dtype !== slot.dtype) throw new RlxError('dtype', `load: ${name} is ${slot.dtype}, given as ${dtype}`, { op: 'load', name });
      return this.#checkInput('load', slot, { data, shape });
    });
    for (const upload of uploads) this.#send(upload);
  }

  close(): void {
    if (!this.#end(new RlxError('closed', 'the session was closed'))) return;
    this.#gpu.removeEventListener('uncapturederror', this.#onError);
    for (const idle of this.#pool.values()) for (const buffer of idle) buffer.destroy();
    this.#program.destroy();
    if (this.#device.owned) this.#gpu.destroy();
  }
}

const isPersistent = ({ role }: Slot): boolean => role === 'param' || role === 'state';

/** Rethrows what a lost device makes of calls, as what it is. */
export async function unlessLost<T>(gpu: GPUDevice, calls: () => Promise<T>): Promise<T> {
  const lost = gpu.lost.then(({ reason, message }): never => {
    throw new RlxError('lost', `the device was lost (${reason}): ${message}`, { steps: 0 });
  });
  try {
    return await Promise.race([lost, calls()]);
  } catch (reason) {
    throw asError(reason);
  }
}
