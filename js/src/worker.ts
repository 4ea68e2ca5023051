// The entry point of a worker that runs sessions, or a part of the work of one, for the page that started it.

import { helpWhenAsked } from './cpu/help.js';
import { setWorkerURL } from './worker/remote.js';
import { serve } from './worker/rpc.js';
import { sessionHandlers } from './runtime/serve.js';

// A bundler that made this a part of another script may have put a path of its own here, or nothing.
const own: string | undefined = import.meta.url;
setWorkerURL(!own || own.startsWith('file:') ? globalThis.location?.href ?? own : own);
serve(sessionHandlers);
helpWhenAsked();
