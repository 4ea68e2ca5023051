// A session on the CPU, by the WebAssembly module rlx-cpu.wasm in this thread.

import { invoke, type Job } from '../graph/compiler.js';
import { fromDevice, type TensorData } from '../values/dtype.js';
import { checkCount, noMore, RlxError, unknownName } from '../values/errors.js';
import { checkDType, checkHost, checkNames, deviceInput, hostBytes, listed, missing } from '../session/inputs.js';
import { Instance, loadModule, type WasmSource } from '../wasm/module.js';
import type { Entry, Plan, Role, Slot } from '../plan/plan.js';
import type { HostTensor, Input, Inputs, Reading, Run, RunOptions, Session } from '../session/session.js';
import { Tensor } from '../values/tensor.js';
import { Request, type Response } from '../wasm/wire.js';

/** Opens a session on the CPU in this thread. Rejects with an {@link RlxError} for a graph that cannot run there. */
export async function openCPU(job: Job, wasm: WasmSource): Promise<Session> {
  const instance = await Instance.start(await loadModule(wasm));
  const request = new Request('open').text(job.name).list(job.entries, (r, { name, text }) => r.text(name).text(text)).numbers(job.symbols, 'u32');
  return new CPUSession(instance, job.name, invoke(request, instance));
}

function readSlots(r: Response): Slot[] {
  return r.list(() => {
    const name = r.text(), role = r.text() as Role, dtype = r.text(), shape = r.list(() => Number(r.text()));
    const bytes = r.u32(), checked = r.u32() === 1, lo = r.f64(), hi = r.f64();
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
  #lastEntry: Entry | undefined;
  #closed = false;
  #announce!: (error: RlxError) => void;

  constructor(instance: Instance, name: string, r: Response) {
    this.#instance = instance;
    this.#program = r.u32();
    this.plan = planOf(name, r);
    this.lost = new Promise((resolve) => this.#announce = resolve);
  }

  #check(): void {
    if (this.#closed) throw new RlxError('closed', 'the session was closed');
  }

  #invoke(method: string, write: (request: Request) => Request): Response {
    this.#check();
    try {
      return invoke(write(new Request(method).u32(this.#program)), this.#instance);
    } catch (reason) {
      if (!this.#instance.alive) this.#announce(reason as RlxError);
      throw reason;
    }
  }

  #entry(name: string): Entry {
    const found = this.plan.entries.find((entry) => entry.name === name);
    if (!found) throw unknownName('the module has no entry', name, this.plan.entries.map((entry) => entry.name));
    return found;
  }

  /** The bytes of a value as the module has them, one byte for a bool. */
  #bytes(op: string, slot: Slot, value: Input): Uint8Array {
    const given = value instanceof Tensor ? { data: deviceInput(op, slot, value, this) as TensorData, shape: value.shape } : value;
    const bytes = hostBytes(op, slot, given);
    if (slot.dtype === 'bool') return Uint8Array.from(new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4));
    return bytes.subarray(0, slot.bytes);
  }

  #checked(entry: Entry, inputs: Inputs): Map<string, Uint8Array> {
    const op = entry.name, slots = entry.inputs.map((i) => this.plan.slots[i]!), made = new Map<string, Uint8Array>();
    for (const name in inputs) {
      const slot = slots.find((s) => s.name === name);
      if (!slot) throw unknownName(`${op} has no input`, name, slots.map((s) => s.name), op);
      made.set(name, this.#bytes(op, slot, inputs[name]!));
    }
    return made;
  }

  /** The bytes of all inputs, for each step; all are checked before the first step. */
  #allInputs(entry: Entry, inputs: Inputs, steps: number): Map<string, Uint8Array>[] {
    const op = entry.name, slots = entry.inputs.map((i) => this.plan.slots[i]!), lists: [string, readonly number[]][] = [];
    for (const slot of slots) {
      const values = listed(op, slot, inputs[slot.name], steps);
      if (values) lists.push([slot.name, values]);
    }
    const first = Object.fromEntries(lists.map(([name, values]) => [name, values[0]!]));
    const common = new Map([...this.#bound.get(op) ?? [], ...this.#checked(entry, { ...inputs, ...first })]);
    for (const slot of slots) if (!common.has(slot.name)) throw missing(op, slot);
    return Array.from({ length: steps }, (_, k) => {
      const own = Object.fromEntries(lists.map(([name, values]) => [name, values[k]!]));
      return new Map([...common, ...this.#checked(entry, own)]);
    });
  }

  async run(name: string, inputs?: Inputs | null, options?: RunOptions | null): Promise<Run> {
    this.#check();
    const { read, steps = 1, ...rest } = options ?? {}, entry = this.#entry(name);
    noMore(name, rest);
    checkCount(`the number of steps in one run of ${name}`, steps, 1);
    const given = this.#allInputs(entry, inputs ?? {}, steps), wanted = read && this.#slots(read, entry);
    for (const all of given) {
      this.#invoke('run', (r) => r.text(name).list([...all], (list, [input, bytes]) => list.text(input).data(bytes)));
      this.#lastEntry = entry;
      this.steps++;
    }
    for (const input in inputs ?? {}) this.#bound.get(name)?.delete(input);
    return wanted ? { step: this.steps, reading: Promise.resolve(this.#reading(wanted)) } : { step: this.steps };
  }

  async bind(name: string, inputs: Inputs): Promise<void> {
    this.#check();
    const checked = this.#checked(this.#entry(name), inputs ?? {});
    // The bytes may be the caller's own array, which changes.
    for (const [input, bytes] of checked) checked.set(input, bytes.slice());
    this.#bound.set(name, new Map([...this.#bound.get(name) ?? [], ...checked]));
  }

  /** A value that can be read after a run of an entry. */
  #readable(name: string, entry = this.#lastEntry): Slot {
    const slots = [...this.#persistent(), ...entry?.outputs.map((i) => this.plan.slots[i]!) ?? []];
    const slot = slots.find((s) => s.name === name);
    if (slot) return slot;
    throw unknownName(`after ${entry ? `a run of ${entry.name}` : 'no run'} there is no value`, name, new Set(slots.map((s) => s.name)));
  }

  #slots(names: readonly string[], entry?: Entry): Slot[] { return checkNames(names).map((name) => this.#readable(name, entry)); }

  #get({ name, dtype, shape }: Slot): TensorData {
    const bytes = this.#invoke('get', (r) => r.text(name)).data().slice() as Uint8Array<ArrayBuffer>;
    return dtype === 'bool' ? bytes : fromDevice(dtype, shape, bytes.buffer);
  }

  #reading(slots: Slot[]): Reading {
    return { step: this.steps, values: Object.fromEntries(slots.map((slot) => [slot.name, this.#get(slot)])) };
  }

  async read(name: string): Promise<TensorData> { return (await this.readAll([name])).values[name]!; }

  async readAll(names: readonly string[]): Promise<Reading> {
    this.#check();
    return this.#reading(this.#slots(names));
  }

  #persistent(): Slot[] { return this.plan.slots.filter(({ role }) => role === 'param' || role === 'state'); }

  #stateSlot(name: string): Slot {
    const slots = this.#persistent(), found = slots.find((slot) => slot.name === name);
    if (!found) throw unknownName('the module has no parameter or state', name, slots.map((slot) => slot.name));
    return found;
  }

  async write(name: string, value: Input): Promise<void> {
    this.#check();
    const bytes = this.#bytes('write', this.#stateSlot(name), value);
    this.#invoke('set', (r) => r.text(name).data(bytes));
  }

  #tensor({ dtype, shape, data }: HostTensor): Tensor {
    return new Tensor({ dtype, shape, owner: this, handle: data, data: async () => data.slice(), free: () => {} });
  }

  async upload(tensor: HostTensor): Promise<Tensor> {
    this.#check();
    checkHost('upload', 'what is given', tensor);
    const { dtype, shape, data } = tensor;
    const slot = { name: 'the tensor', role: 'input' as const, dtype, shape: [...shape], buffer: 0, offset: 0, bytes: data.byteLength };
    hostBytes('upload', slot, { data, shape });
    return this.#tensor({ dtype, shape, data: data.slice() });
  }

  async keep(name: string): Promise<Tensor> {
    this.#check();
    const slot = this.#readable(name);
    return this.#tensor({ dtype: slot.dtype, shape: slot.shape, data: this.#get(slot) });
  }

  async save(): Promise<Record<string, HostTensor>> {
    this.#check();
    return Object.fromEntries(this.#persistent().map((slot) => [slot.name, { dtype: slot.dtype, shape: slot.shape, data: this.#get(slot) }]));
  }

  async load(tensors: Readonly<Record<string, HostTensor>>): Promise<void> {
    this.#check();
    const checked = Object.entries(tensors ?? {}).map(([name, tensor]) => {
      const slot = this.#stateSlot(name);
      checkHost('load', name, tensor);
      const { dtype, shape, data } = tensor;
      checkDType('load', slot, dtype);
      return [name, this.#bytes('load', slot, { data, shape })] as const;
    });
    for (const [name, bytes] of checked) this.#invoke('set', (r) => r.text(name).data(bytes));
  }

  close(): void {
    if (!this.#closed && this.#instance.alive) this.#invoke('close', (r) => r);
    this.#closed = true;
  }
}
