// What a worker runs: sessions on the CPU, for the page that started it.

import type { Job } from './graph/compiler.js';
import { openCPU } from './cpu/cpu-session.js';
import type { WasmSource } from './wasm/module.js';
import { serve } from './worker/rpc.js';
import { sessionHandlers } from './worker/serve.js';

serve(sessionHandlers((job: Job, { wasm }: { wasm: WasmSource }) => openCPU(job, wasm)));
