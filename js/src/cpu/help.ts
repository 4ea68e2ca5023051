// The worker side of a program's helper threads on the CPU.

import { gridBytes, help, type Kernels } from './grid.js';
import type { Help } from './threads.js';

/** Makes this worker a helper thread for its lifetime, on request. */
export function helpWhenAsked(): void {
  addEventListener('message', async ({ data }: MessageEvent<Partial<Help> | null>) => {
    if (!(data?.module instanceof WebAssembly.Module)) return;
    const { module, memory, names, grid, own } = data as Help;
    const ready = WebAssembly.instantiate(module, { rlx: { memory }, Math: Math as unknown as WebAssembly.ModuleImports });
    const { exports } = await ready.finally(() => postMessage(0)); // the caller continues without it after a failure
    help(new Int32Array(memory.buffer, grid, gridBytes / 4), names.map((name) => exports[name]) as unknown as Kernels, own);
  });
}
