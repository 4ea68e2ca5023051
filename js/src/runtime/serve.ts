// The worker's side of a remote program.

import { type Packed, Unpackers } from '../cpu/unpack.js';
import { decodePlan } from '../plan/decode.js';
import type { Program, Reading, Run, RunOptions } from '../program/program.js';
import type { Input, Inputs } from '../program/types.js';
import { RlxError } from '../values/errors.js';
import type { Tensor } from '../values/tensor.js';
import type { RemoteInfo, RemoteTensor } from '../worker/remote.js';
import type { Handlers } from '../worker/rpc.js';
import { openLocal, type ProgramOptions } from './open.js';

/** A program with the handles that its other half uses. */
class Served {
  readonly #tensors = new Map<number, Tensor>();
  readonly #readings = new Map<number, Promise<Reading>>();
  readonly #program: Program;
  readonly #unpackers = new Unpackers();
  #next = 0;

  constructor(program: Program) { this.#program = program; }

  #unpack(value: Input | { tensor: number }): Input {
    const number = (value as { tensor?: number } | null)?.tensor;
    return typeof number === 'number' ? this.#tensor(number) : value as Input;
  }

  #unpackAll(inputs: Inputs): Inputs {
    return Object.fromEntries(Object.entries(inputs ?? {}).map(([name, value]) => [name, this.#unpack(value)]));
  }

  #tensor(number: number): Tensor {
    const found = this.#tensors.get(number);
    if (!found) throw new RlxError('closed', 'the tensor was disposed of');
    return found;
  }

  #number(tensor: Tensor): RemoteTensor {
    this.#tensors.set(this.#next, tensor);
    return { tensor: this.#next++, dtype: tensor.dtype, shape: tensor.shape };
  }

  readonly methods: Handlers = {
    run: async (entry: string, inputs: Inputs, options: RunOptions) => {
      const { step, reading }: Run = await this.#program.run(entry, this.#unpackAll(inputs), options);
      if (!reading) return { step };
      this.#readings.set(this.#next, reading);
      return { step, reading: this.#next++ };
    },
    reading: (number: number) => {
      const reading = this.#readings.get(number);
      this.#readings.delete(number);
      return reading;
    },
    bind: (entry: string, inputs: Inputs) => this.#program.bind(entry, this.#unpackAll(inputs)),
    write: (name: string, value: Input) => (value as Packed | null)?.plan ? this.#unpackers.write(this.#program, name, value as Packed) : this.#program.write(name, this.#unpack(value)),
    read: (name: string) => this.#program.read(name),
    readAll: (names: string[]) => this.#program.readAll(names),
    save: () => this.#program.save(),
    load: (tensors, options) => this.#program.load(tensors, options),
    upload: async (tensor) => this.#number(await this.#program.upload(tensor)),
    keep: async (name: string) => this.#number(await this.#program.keep(name)),
    data: (number: number) => this.#tensor(number).data(),
    free: (number: number) => {
      this.#tensor(number).dispose();
      this.#tensors.delete(number);
    },
    lost: async () => { throw await this.#program.lost; },
    close: () => this.#program.close(),
  };
}

/** The methods of a worker that holds programs on plan files, one for each caller. */
export function programHandlers(): Handlers {
  const handlers: Handlers = {
    async open(file: Uint8Array | ArrayBuffer, options: ProgramOptions): Promise<RemoteInfo> {
      const program = await openLocal(decodePlan(file), options ?? {}), { plan, device, fallbackReason } = program;
      Object.assign(handlers, new Served(program).methods);
      // Constants and code are large, and on the device: they are not sent.
      const { code, ...rest } = plan;
      return { plan: { ...rest, constants: [], variants: [] }, device, fallbackReason };
    },
  };
  return handlers;
};
