// What a worker runs: the compiler, for the page that started it.

import { compilerHandlers } from './graph/compiler.js';
import { answer, type Endpoint } from './worker/rpc.js';

answer(globalThis as unknown as Endpoint, compilerHandlers());
