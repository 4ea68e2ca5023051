// Numbers of packed blocks, written straight into the memory of a program in this thread: no other copy of them exists.

import { decodePlan } from '../plan/decode.js';
import type { Program } from '../program/program.js';
import { yieldTask } from '../values/task.js';
import { type HostTensor, Tensor } from '../values/tensor.js';

/** A tensor as packed bytes of a format, and a plan for the CPU that computes the numbers of some bytes. */
export interface Packed extends HostTensor { data: Uint8Array<ArrayBuffer>; format: string; plan: Uint8Array<ArrayBuffer> }

/** Writes numbers of packed bytes, part by part. */
type Unpack = (to: Uint8Array, packed: Uint8Array) => Promise<void>;

/** Opens a plan of one input and one output. It runs in this thread alone: others take longer to start. */
async function open(file: Uint8Array): Promise<Unpack> {
  const plan = decodePlan(file), { memory, addresses, entries } = await (await import('./cpu-program.js')).buildExecutable(plan, 1, undefined, true);
  const [x, y] = plan.slots.map(({ buffer, offset, bytes }) => new Uint8Array(memory, addresses[buffer]! + offset, bytes)) as [Uint8Array, Uint8Array];
  const { steps } = entries.get('unpack')!;
  return async (to, packed) => {
    const pause = yieldTask();
    for (let at = 0, begin = 0; at < packed.length; at += x.length, begin += y.length) {
      x.set(packed.subarray(at, at + x.length)); // the last part may be shorter: numbers of what follows it are not copied
      for (const step of steps) step();
      to.set(y.subarray(0, to.length - begin), begin);
      await pause();
    }
  };
}

/** Unpacks, with a plan for each format. */
export class Unpackers {
  readonly #opened = new Map<string, Promise<Unpack>>();

  /** Writes the numbers of a tensor to memory. */
  async unpack(to: Uint8Array, { format, plan, data }: Pick<Packed, 'format' | 'plan' | 'data'>): Promise<void> {
    let opened = this.#opened.get(format);
    if (!opened) this.#opened.set(format, opened = open(plan));
    await (await opened)(to, data);
  }

  /** Sets a parameter of a program on the CPU, in this thread. */
  async write(program: Program, name: string, packed: Packed): Promise<void> {
    let to!: Uint8Array;
    const place = new Tensor({ ...packed, owner: program, handle: (bytes: Uint8Array) => { to = bytes; }, data: async () => packed.data, free: () => {} });
    try {
      await program.write(name, place);
    } finally {
      place.dispose();
    }
    await this.unpack(to, packed);
  }
}
