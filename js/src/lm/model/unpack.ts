// Packed rows as numbers, for processors where products of packed rows are slow.

import { program } from '../../compile/train.js';
import { graph } from '../../graph/graph.js';
import { packedBlock } from '../../nn/storage.js';
import type { Program } from '../../program/program.js';
import { yieldTask } from '../../runtime/task.js';

/** The elements that a run unpacks. */
const elementsOfRun = 1 << 18;

/** Unpacks blocks on the CPU, by the rules of the op `dequantize`: in this thread, as messages to another take longer. */
export class Unpacker {
  readonly #programs = new Map<string, Promise<Program>>();

  /** The program of a format, which unpacks some blocks. */
  #of(format: string, elements: number, bytes: number): Promise<Program> {
    let made = this.#programs.get(format);
    if (!made) {
      const blocks = elementsOfRun / elements;
      const unpack = () => ({ name: `unpack ${format}`, entries: { unpack: graph('unpack', (b) => b.output('y', b.input('x', 'u8', [blocks, bytes]).dequantize({ format }))) } });
      this.#programs.set(format, made = program(unpack, { on: 'cpu', worker: false }) as Promise<Program>);
    }
    return made;
  }

  /** The elements of packed bytes, f32. */
  async unpack(format: string, data: Uint8Array): Promise<Float32Array> {
    const [elements, bytes] = packedBlock(format)!, run = await this.#of(format, elements, bytes), size = elementsOfRun / elements * bytes, pause = yieldTask();
    const all = new Float32Array(data.length / bytes * elements);
    for (let at = 0, to = 0; at < data.length; at += size, to += elementsOfRun) {
      const part = data.subarray(at, at + size), x = part.length === size ? part : new Uint8Array(size);
      if (x !== part) x.set(part);
      const { values: { y } } = await (await run.run('unpack', { x }, { read: ['y'] })).reading! as { values: { y: Float32Array } };
      all.set(part.length === size ? y : y.subarray(0, all.length - to), to);
      await pause();
    }
    return all;
  }

  /** Frees its memory, until it is used again. */
  close(): void {
    for (const made of this.#programs.values()) void made.then((one) => one.close(), () => {});
    this.#programs.clear();
  }
}
