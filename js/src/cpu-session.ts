// A session on the CPU, by the WebAssembly module rlx-cpu.wasm in this thread.

import { invoke, type Job } from './compiler.js';
import { arrayType, type DType, sizeOf, type TensorData } from './dtype.js';
import { RlxError } from './errors.js';
import { deviceInput, hostBytes } from './inputs.js';
import { Instance, loadModule, type WasmSource } from './module.js';
import type { Plan, Role, Slot } from './plan.js';
import type { HostTensor, Input, Inputs, Reading, Run, RunOptions, Session } from './session.js';
import { Tensor } from './tensor.js';
import { Request, type Response } from './wire.js';

/** Opens a session on the CPU in this thread. Rejects with an {@link RlxError} for a graph that cannot run there. */
export async function openCPU(job: Job, wasm: WasmSource): Promise<Session> {
  const instance = await Instance.start(await loadModule(wasm));
  const request = new Request('open').text(job.name).list(job.entries, (r, { name, text }) => r.text(name).text(text)).numbers(job.symbols, 'u32');
  return new CPUSession(instance, job.name, invoke(request, instance));
}

function readSlots(r: Response): Slot[] {
  return r.list(() => {
    const name = r.text(), role = r.text() as Role, dtype = r.text(), shape = r.list(() => Number(r.text()));
    const checked = r.u32() === 1, lo = r.f64(), hi = r.f64();
    const bytes = sizeOf(shape) * arrayType(dtype).BYTES_PER_ELEMENT;
    return { name, role, dtype, shape, buffer: 0, offset: 0, bytes, ...checked && { range: [lo, hi] as [number, number] } };
  });
}

/** What a session tells of its plan, for a module that was compiled for the CPU: names and types. */
function planOf(name: string, r: Response): Plan {
  const slots = readSlots(r), persistent = new Map(slots.map((slot, i) => [slot.name, i]));
  const entries = r.list(() => {
    const entry = { name: r.text(), inputs: [] as number[], scalars: [], outputs: [] as number[], uniformBytes: 0, steps: [] };
    for (const slot of readSlots(r)) {
      if (slot.role === 'input') entry.inputs.push(slots.push(slot) - 1);
      else entry.outputs.push(persistent.get(slot.name) ?? slots.push(slot) - 1);
    }
    return entry;
  });
  const requires = { features: [], limits: {}, subgroup: [0, 0] as [number, number] };
  return { name, compiler: '', target: 'cpu', requires, symbols: [], buffers: [], slots, constants: [], kernels: [], entries, variants: [] };
}

class CPUSession implements Session {
  readonly plan: Plan;
  readonly deviceName = 'CPU';
  readonly lost: Promise<RlxError>;
  steps = 0;
  readonly #instance: Instance;
  readonly #program: number;
  readonly #bound = new Map<string, Map<string, Uint8Array>>();
  #lastEntry: string | undefined;
  #closed = false;
  #announce!: (error: RlxError) => void;

  constructor(instance: Instance, name: string, r: Response) {
    this.#instance = instance;
    this.#program = r.u32();
    this.plan = planOf(name, r);
    this.lost = new Promise((resolve) => this.#announce = resolve);
  }

  #request(method: string): Request {
    if (this.#closed) throw new RlxError('closed', 'the session was closed');
    return new Request(method).u32(this.#program);
  }

  #invoke(request: Request): Response {
    try {
      return invoke(request, this.#instance);
    } catch (reason) {
      if (!this.#instance.alive) this.#announce(reason as RlxError);
      throw reason;
    }
  }

  #inputs(entry: string): Slot[] {
    const found = this.plan.entries.find(({ name }) => name === entry);
    if (!found) throw new RlxError('name', `there is no entry ${entry}: there are ${this.plan.entries.map(({ name }) => name).join(', ')}`, { name: entry });
    return found.inputs.map((i) => this.plan.slots[i]!);
  }

  /** The bytes of an input, one byte for a bool. */
  #bytes(op: string, slot: Slot, value: Input): Uint8Array {
    const given = value instanceof Tensor ? { data: deviceInput(op, slot, value, this) as TensorData, shape: value.shape } : value;
    const bytes = hostBytes(op, slot, given);
    if (slot.dtype === 'bool') return Uint8Array.from(new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4));
    return bytes.subarray(0, slot.bytes);
  }

  #checked(entry: string, inputs: Inputs): Map<string, Uint8Array> {
    const slots = this.#inputs(entry);
    const made = new Map<string, Uint8Array>();
    for (const name in inputs) {
      const slot = slots.find((s) => s.name === name);
      if (!slot) throw new RlxError('name', `${entry} has no input ${name}: it has ${slots.map((s) => s.name).join(', ') || 'none'}`, { op: entry, name });
      made.set(name, this.#bytes(entry, slot, inputs[name]!));
    }
    return made;
  }

  async run(entry: string, inputs: Inputs = {}, { read, steps = 1 }: RunOptions = {}): Promise<Run> {
    const bound = this.#bound.get(entry), slots = this.#inputs(entry);
    if (!Number.isInteger(steps) || steps < 1) throw new RlxError('limit', `${entry}: ${steps} steps in one run`, { op: entry });
    for (let k = 0; k < steps; k++) {
      const own = Object.fromEntries(Object.entries(inputs).map(([name, value]) => {
        if (!Array.isArray(value)) return [name, value as Input];
        if (value.length !== steps) throw new RlxError('shape', `${entry}: ${name} has ${value.length} values for ${steps} steps`, { op: entry, name, shape: [value.length], expected: [steps] });
        return [name, value[k] as Input];
      }));
      const all = new Map([...bound ?? [], ...this.#checked(entry, own)]);
      for (const { name } of slots) {
        if (!all.has(name)) throw new RlxError('name', `${entry}: input ${name} is missing`, { op: entry, name });
      }
      this.#invoke(this.#request('run').text(entry).list([...all], (r, [name, bytes]) => r.text(name).data(bytes)));
      this.#lastEntry = entry;
      this.steps++;
    }
    for (const name in inputs) bound?.delete(name);
    return read ? { step: this.steps, reading: this.readAll(read) } : { step: this.steps };
  }

  async bind(entry: string, inputs: Inputs): Promise<void> {
    this.#bound.set(entry, new Map([...this.#bound.get(entry) ?? [], ...this.#checked(entry, inputs)]));
  }

  #readable(name: string): Slot {
    const entry = this.plan.entries.find((e) => e.name === this.#lastEntry);
    const slots = [...entry?.outputs.map((i) => this.plan.slots[i]!) ?? [], ...this.#persistent()];
    const slot = slots.find((s) => s.name === name);
    if (!slot) throw new RlxError('name', `there is no value ${name} to read after ${this.#lastEntry ?? 'nothing was run'}: there are ${slots.map((s) => s.name).join(', ') || 'none'}`, { name });
    return slot;
  }

  async read(name: string): Promise<TensorData> {
    const { dtype, shape } = this.#readable(name), type = arrayType(dtype);
    const bytes = this.#invoke(this.#request('get').text(name)).data().slice();
    return new type(bytes.buffer as ArrayBuffer, 0, sizeOf(shape));
  }

  async readAll(names: readonly string[]): Promise<Reading> {
    const step = this.steps, values = await Promise.all(names.map(async (name) => [name, await this.read(name)] as const));
    return { step, values: Object.fromEntries(values) };
  }

  #persistent(): Slot[] { return this.plan.slots.filter(({ role }) => role === 'param' || role === 'state'); }

  async write(name: string, value: Input): Promise<void> {
    const slot = this.#persistent().find((s) => s.name === name);
    if (!slot) throw new RlxError('name', `there is no parameter or state ${name}: there are ${this.#persistent().map((s) => s.name).join(', ') || 'none'}`, { name });
    this.#invoke(this.#request('set').text(name).data(this.#bytes('write', slot, value)));
  }

  #tensor({ dtype, shape, data }: HostTensor): Tensor {
    return new Tensor({ dtype, shape, owner: this, handle: data, data: async () => data.slice(), free: () => {} });
  }

  async upload({ dtype, shape, data }: HostTensor): Promise<Tensor> {
    const slot = { name: 'the tensor', role: 'input' as const, dtype: dtype as DType, shape: [...shape], buffer: 0, offset: 0, bytes: data.byteLength };
    hostBytes('upload', slot, { data, shape });
    return this.#tensor({ dtype, shape, data: data.slice() });
  }

  async keep(name: string): Promise<Tensor> {
    const { dtype, shape } = this.#readable(name);
    return this.#tensor({ dtype, shape, data: await this.read(name) });
  }

  async save(): Promise<Record<string, HostTensor>> {
    const saved = this.#persistent().map(async ({ name, dtype, shape }) => [name, { dtype, shape, data: await this.read(name) }] as const);
    return Object.fromEntries(await Promise.all(saved));
  }

  async load(tensors: Readonly<Record<string, HostTensor>>): Promise<void> {
    for (const [name, { data, shape }] of Object.entries(tensors)) await this.write(name, { data, shape });
  }

  close(): void {
    if (this.#closed) return;
    this.#invoke(new Request('close').u32(this.#program));
    this.#closed = true;
  }
}
