// What a worker runs: sessions on the CPU, for the page that started it.

import type { Job } from './compiler.js';
import { openCPU } from './cpu-session.js';
import type { WasmSource } from './module.js';
import { answer, type Endpoint } from './rpc.js';
import { sessionHandlers } from './serve.js';

answer(globalThis as unknown as Endpoint, sessionHandlers((job: Job, { wasm }: { wasm: WasmSource }) => openCPU(job, wasm)));
