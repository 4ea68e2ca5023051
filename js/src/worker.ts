// The entry point of a worker that runs programs, or a part of the work of one, for the page that started it.

import { helpWhenAsked } from './cpu/help.js';
import { programHandlers } from './runtime/serve.js';
import { setWorkerURL } from './worker/start.js';
import { serve } from './worker/rpc.js';

// A bundler that included this in another script may have replaced the path, or removed it.
const own: string | undefined = import.meta.url;
setWorkerURL(!own || own.startsWith('file:') ? globalThis.location?.href ?? own : own);
serve(programHandlers);
helpWhenAsked();
