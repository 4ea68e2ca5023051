// The entry point of a worker that runs the compiler for the page that started it.

import { compilerHandlers } from './compile/compiler.js';
import { serve } from './worker/rpc.js';

serve(compilerHandlers);
