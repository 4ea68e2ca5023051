// Serves the demo, as strictly as it is meant to be deployed: own files only, isolated from
// other origins.
//
//   node js/serve.mjs            then open the address it prints
//   PORT=9000 node js/serve.mjs

import { join } from 'node:path';
import { isolation, serve, strictCSP } from './test/rig/serve.mjs';

const root = join(import.meta.dirname, '..');
export const demoMounts = { '/': join(root, 'demo/web'), '/rlx': join(root, 'js/dist') };
/** The worker that runs what a visitor wrote loads it from a blob; no other script may. */
const policies = {
  '/playground/worker.js': strictCSP.replace("script-src 'self'", "script-src 'self' blob:"),
  // A visitor may name the address of a model.
  '/chat.html': strictCSP.replace("connect-src 'self'", "connect-src 'self' https:"),
};
export const demoOptions = { csp: strictCSP, policies, headers: isolation };

// listen takes port 8080 if it is free, any other if not, unless one was asked for.
async function listen(options) {
  if (process.env.PORT) return serve(demoMounts, { ...options, port: Number(process.env.PORT) });
  return serve(demoMounts, { ...options, port: 8080 }).catch(() => serve(demoMounts, options));
}

if (process.argv[1] === import.meta.filename) {
  const { origin, server } = await listen(demoOptions);
  server.ref();
  console.log(`The demo is at ${origin}/ — end with Ctrl-C.`);
}
