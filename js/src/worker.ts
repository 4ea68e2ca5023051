// What a worker runs: sessions, for the page that started it.

import { answer, type Endpoint } from './rpc.js';
import { openPlan, sessionHandlers } from './serve.js';

answer(globalThis as unknown as Endpoint, sessionHandlers(openPlan));
