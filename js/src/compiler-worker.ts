// What a worker runs: the compiler, for the page that started it.

import { compilerHandlers } from './graph/compiler.js';
import { serve } from './worker/rpc.js';

serve(compilerHandlers);
