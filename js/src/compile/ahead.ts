// Modules for the bundler's plug-in: compiled at build time, for all targets, in one file.

import type { Graph } from '../graph/graph.js';
import { parseGraph } from '../graph/graph.js';
import { startsOf } from '../graph/params.js';
import { crc32 } from '../plan/decode.js';
import type { TypesOfGraphs } from '../program/types.js';
import { checkOptions } from '../values/errors.js';
import type { Limits, Target } from './compiler.js';
import { type Content, type Made, madeOf } from './made.js';
import { compileAll, type Module, type ModuleSource } from './train.js';

export interface AheadOptions {
  /**
   * Devices with more capabilities than every WebGPU device has, each for a variant of the plan:
   * `{ f16: true }`, for example. A page runs the first variant that its device supports, so the
   * most capable comes first. A variant equal to the plan without it takes no room.
   */
  variants?: readonly Limits[];
}

/** The query by which the plug-in asks a module for its plan. */
const content = Symbol.for('rlx ahead');

const allTargets: readonly Target[] = ['webgpu', 'wasm-relaxed', 'wasm'];

/**
 * A module that is compiled ahead of time: the plug-in of `@rlx-go/rlx/vite` replaces it, in a file `NAME.rlx.ts`, by its plan for
 * WebGPU and the CPU, and the page loads the runtime alone. Without the plug-in it is compiled when it is first opened.
 * A function that returns the module needs no `init` before.
 *
 * ```ts
 * export const square = ahead(() => ({ entries: { main: graph('square', (b) => b.output('y', b.input('x', 'f32', [2]).square())) } }));
 * ```
 */
export function ahead<const G extends Module['entries'] = Module['entries']>(module: ModuleSource<G>, options: AheadOptions = {}): Made<TypesOfGraphs<G>> {
  checkOptions('ahead', options, 'variants');
  const make = async (): Promise<Content> => {
    const { files, starts } = await compileAll(module as ModuleSource, allTargets, options.variants ?? [], (made) => {
      const graphs = Object.entries(made.entries).map(([name, one]): [string, Graph] => [name, typeof one === 'string' ? parseGraph(one) : one]);
      return startsOf(Object.fromEntries(graphs), made.symbols);
    });
    return { file: joined(files), starts };
  };
  return Object.assign(madeOf(make), { [content]: make });
}

/** One plan file of several: the others are variants of the first. */
function joined([first, ...others]: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const different = others.filter((file, i) => [first, ...others.slice(0, i)].every((other) => !equal(other!, file)));
  const section = 12, padded = (n: number) => n + (-n & 3), total = different.reduce((sum, file) => sum + section + padded(file.length), first!.length);
  const made = new Uint8Array(total), view = new DataView(made.buffer);
  made.set(first!);
  let at = first!.length;
  for (const file of different) {
    made.set(new TextEncoder().encode('VARI'), at); // not required: the flags are 0
    view.setUint32(at + 8, file.length, true);
    made.set(file, at + section);
    at += section + padded(file.length);
  }
  view.setUint32(8, total, true);
  view.setUint32(12, crc32(made.subarray(16)), true);
  return made;
}

const equal = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, i) => byte === b[i]);
