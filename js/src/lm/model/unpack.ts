// Packed rows as numbers, for processors where products of packed rows are slow.

import { compile, cpuTarget } from '../../compile/train.js';
import { type Packed, Unpackers } from '../../cpu/unpack.js';
import { graph } from '../../graph/graph.js';
import { packedBlock } from '../../nn/storage.js';
import type { Program } from '../../program/program.js';
import type { HostTensor } from '../../values/tensor.js';

/** The value of a parameter: numbers, or packed bytes, which `write` unpacks. */
export interface Read extends HostTensor { write?(program: Program, name: string): Promise<void> }

/** The elements that a run unpacks: they stay in the processor's cache until they are copied. */
const elementsOfRun = 1 << 16;

/** Unpacks blocks on the CPU, by the rules of the op `dequantize`. */
export class Unpacker {
  readonly #plans = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();
  readonly #unpackers = new Unpackers();

  /** The plan of a format, which unpacks some blocks. */
  #plan(format: string): Promise<Uint8Array<ArrayBuffer>> {
    let made = this.#plans.get(format);
    if (!made) {
      const [elements, bytes] = packedBlock(format)!, blocks = elementsOfRun / elements;
      const unpack = () => ({ name: `unpack ${format}`, target: cpuTarget(), entries: { unpack: graph('unpack', (b) => b.output('y', b.input('x', 'u8', [blocks, bytes]).dequantize({ format }))) } });
      this.#plans.set(format, made = compile(unpack));
    }
    return made;
  }

  /** The elements of packed bytes, f32. */
  async #unpack(format: string, data: Uint8Array<ArrayBuffer>): Promise<Float32Array> {
    const [elements, bytes] = packedBlock(format)!, all = new Float32Array(data.length / bytes * elements);
    await this.#unpackers.unpack(new Uint8Array(all.buffer), { format, data, plan: await this.#plan(format) });
    return all;
  }

  /** The value of a parameter of packed bytes: its numbers or, if it may be `packed`, what sets it. */
  async value(dtype: string, shape: readonly number[], format: string, data: Uint8Array<ArrayBuffer>, packed: boolean): Promise<Read> {
    if (!packed) return { dtype, shape, data: await this.#unpack(format, data) };
    return { dtype, shape, data, write: (program, name) => this.#write(program, name, { dtype, shape, data, format }) };
  }

  /** Sets a parameter of a program: on the CPU it is unpacked where the program runs, into its memory. */
  async #write(program: Program, name: string, { dtype, shape, data, format }: Omit<Packed, 'plan'>): Promise<void> {
    if (program.device.name !== 'cpu') return (program.take ?? program.write).call(program, name, { dtype, shape, data: await this.#unpack(format, data) });
    const own = data.length < data.buffer.byteLength ? new Uint8Array(data) : data; // not `slice`, which of a Buffer is a view
    const packed: Packed = { dtype, shape, data: own, format, plan: (await this.#plan(format)).slice() }; // both of which move
    return program.take ? program.take(name, packed) : this.#unpackers.write(program, name, packed);
  }
}
