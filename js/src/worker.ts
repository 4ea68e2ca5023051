// What a worker runs: sessions, for the page that started it.

import { answer, type Endpoint } from './worker/rpc.js';
import { openPlan, sessionHandlers } from './worker/serve.js';

answer(globalThis as unknown as Endpoint, sessionHandlers(openPlan));
