// What a thread runs that helps a session on the CPU.

import { gridBytes, help, type Kernels } from './cpu/grid.js';
import type { Help } from './cpu/threads.js';

addEventListener('message', async ({ data }: MessageEvent<Help>) => {
  const { module, memory, names, grid, own } = data;
  const ready = WebAssembly.instantiate(module, { rlx: { memory }, Math: Math as unknown as WebAssembly.ModuleImports });
  const { exports } = await ready.finally(() => postMessage(0)); // who waits for it goes on also without it
  help(new Int32Array(memory.buffer, grid, gridBytes / 4), names.map((name) => exports[name]) as unknown as Kernels, own);
});
