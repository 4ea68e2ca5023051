// What a thread runs that helps a session on the CPU.

import { gridBytes, help, type Kernels } from './cpu/grid.js';
import type { Help } from './cpu/threads.js';

addEventListener('message', async ({ data }: MessageEvent<Help>) => {
  const { module, memory, names, grid, own } = data;
  const { exports } = await WebAssembly.instantiate(module, { rlx: { memory }, Math: Math as unknown as WebAssembly.ModuleImports });
  help(new Int32Array(memory.buffer, grid, gridBytes / 4), names.map((name) => exports[name]) as unknown as Kernels, own);
});
