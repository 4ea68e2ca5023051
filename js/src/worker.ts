// What a worker runs: sessions, for the page that started it.

import { serve } from './worker/rpc.js';
import { sessionHandlers } from './worker/serve.js';

serve(sessionHandlers);
