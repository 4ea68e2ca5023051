// A program on the CPU: the kernels are functions of a WebAssembly module, called in this thread and in
// helper threads where the page may have them.

import type { Plan, Slot } from '../plan/plan.js';
import { statusBytes } from '../plan/validate.js';
import { BaseProgram, statusError, type Upload } from '../program/base.js';
import type { Program, Reading, Run, RunOptions } from '../program/program.js';
import type { Inputs } from '../program/types.js';
import { fromDevice } from '../values/dtype.js';
import { asError } from '../values/errors.js';
import { byName } from '../values/named.js';
import { Tensor, type TensorType } from '../values/tensor.js';
import { buildExecutable, type Executable, type ExecutableEntry } from './executable.js';

export { buildExecutable }; // for what runs beside a program

/** Makes a plan with code, which may be compiled already, ready to run. */
export const openCPU = async (plan: Plan, maxSteps: number, code?: WebAssembly.Module): Promise<Program> => new CPUProgram(plan, await buildExecutable(plan, maxSteps, code));

class CPUProgram extends BaseProgram<ExecutableEntry> {
  readonly device = { name: 'cpu', description: 'CPU' } as const;
  #executable: Executable | undefined;
  /** The memory of slots, and of the row of scalars by its entry: views that a step need not make. */
  readonly #views = new Map<Slot | ExecutableEntry, Uint8Array>();
  readonly #status: Uint32Array | undefined;

  constructor(plan: Plan, executable: Executable) {
    super(plan, executable);
    this.#executable = executable;
    const { status } = plan, { memory, addresses } = executable;
    this.#status = status && new Uint32Array(memory, addresses[status.buffer]! + status.offset, statusBytes / 4);
  }

  #view(key: Slot | ExecutableEntry, at: number, bytes: number): Uint8Array {
    let view = this.#views.get(key);
    if (!view) this.#views.set(key, view = new Uint8Array(this.#executable!.memory, at, bytes));
    return view;
  }

  #bytes(slot: Slot): Uint8Array { return this.#view(slot, this.#executable!.addresses[slot.buffer]! + slot.offset, slot.bytes); }

  async run(name: string, inputs?: Inputs | null, options?: RunOptions | null): Promise<Run<any>> {
    const { target, steps, slots } = this.options(name, options);
    this.store(this.accept(target, inputs ?? {}, steps));
    for (let k = 0; k < steps; k++) this.#step(target, k);
    return { step: this.steps, reading: slots && this.capture(slots) };
  }

  #step(target: ExecutableEntry, k: number): void {
    const { rows, stride, steps } = target;
    const row = this.#view(target, this.#executable!.row, stride);
    for (let i = 0; i < stride; i++) row[i] = rows[k * stride + i]!; // without a view of its own
    try {
      for (const step of steps) step();
    } catch (reason) {
      this.fail(asError(reason, 'wasm'));
    }
    this.check();
    this.#checkStatus();
    this.lastEntry = target;
    this.steps++;
  }

  /** Throws the error encoded in the status word, and clears it for later runs. */
  #checkStatus(): void {
    const words = this.#status;
    if (!words?.[0]) return;
    const error = statusError(this.plan.status!, words);
    words.fill(0);
    if (error) throw error;
  }

  protected store(uploads: Upload[]): void {
    for (const { slot, bytes, from } of uploads) if (typeof from === 'function') from(this.#bytes(slot));
    else if (bytes ?? from) this.#bytes(slot).set(bytes ?? from as Uint8Array);
  }

  protected async capture(slots: Slot[]): Promise<Reading> {
    return { step: this.steps, values: byName(slots, (slot) => fromDevice(slot.dtype, slot.shape, this.#bytes(slot).slice().buffer)) };
  }

  protected tensor({ dtype, shape }: TensorType, from: Uint8Array<ArrayBuffer> | Slot): Tensor {
    const bytes = (from instanceof Uint8Array ? from : this.#bytes(from)).slice();
    return new Tensor({ dtype, shape, owner: this, handle: bytes, data: async () => fromDevice(dtype, shape, bytes.slice().buffer), free: () => {} });
  }

  protected release(): void {
    for (const thread of this.#executable!.threads) thread.terminate();
    this.#executable = undefined;
    this.#views.clear();
  }
}
