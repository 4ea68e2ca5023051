// The worker's side of a remote session.

import { RlxError } from '../values/errors.js';
import { openLocal, type SessionOptions } from './open.js';
import { decodePlan } from '../plan/decode.js';
import type { RemoteInfo, RemoteTensor } from '../worker/remote.js';
import type { Handlers } from '../worker/rpc.js';
import type { Reading, Run, RunOptions, Session } from '../program/session.js';
import type { Tensor } from '../values/tensor.js';
import type { Input, Inputs } from '../program/types.js';

/** A session with the handles that its other half uses. */
class Served {
  readonly #tensors = new Map<number, Tensor>();
  readonly #readings = new Map<number, Promise<Reading>>();
  readonly #session: Session;
  #next = 0;

  constructor(session: Session) { this.#session = session; }

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
      const { step, reading }: Run = await this.#session.run(entry, this.#unpackAll(inputs), options);
      if (!reading) return { step };
      this.#readings.set(this.#next, reading);
      return { step, reading: this.#next++ };
    },
    reading: (number: number) => {
      const reading = this.#readings.get(number);
      this.#readings.delete(number);
      return reading;
    },
    bind: (entry: string, inputs: Inputs) => this.#session.bind(entry, this.#unpackAll(inputs)),
    write: (name: string, value: Input) => this.#session.write(name, this.#unpack(value)),
    read: (name: string) => this.#session.read(name),
    readAll: (names: string[]) => this.#session.readAll(names),
    save: () => this.#session.save(),
    load: (tensors, options) => this.#session.load(tensors, options),
    upload: async (tensor) => this.#number(await this.#session.upload(tensor)),
    keep: async (name: string) => this.#number(await this.#session.keep(name)),
    data: (number: number) => this.#tensor(number).data(),
    free: (number: number) => {
      this.#tensor(number).dispose();
      this.#tensors.delete(number);
    },
    lost: async () => { throw await this.#session.lost; },
    close: () => this.#session.close(),
  };
}

/** The methods of a worker that holds sessions on plan files, one for each caller. */
export function sessionHandlers(): Handlers {
  const handlers: Handlers = {
    async open(file: Uint8Array | ArrayBuffer, options: SessionOptions): Promise<RemoteInfo> {
      const session = await openLocal(decodePlan(file), options ?? {}), { plan, deviceName, fallbackReason } = session;
      Object.assign(handlers, new Served(session).methods);
      // Constants and code are on the device by now, and large: they stay here.
      const { code, ...rest } = plan;
      return { plan: { ...rest, constants: [], variants: [] }, deviceName, fallbackReason };
    },
  };
  return handlers;
};
