// A worker in workerd, the runtime of Cloudflare Workers.

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Runs a worker.
 * @param {string} folder in which its files are, and gets the configuration
 * @param {Record<string, string>} modules the files by the names that they are imported by, the worker first: JavaScript or WebAssembly
 * @returns {Promise<{child: import('node:child_process').ChildProcess, origin: string}>} the process, to be killed, and its address
 */
export async function serveWorker(folder, modules) {
  const list = Object.entries(modules).map(([name, file]) => `  (name = "${name}", ${name.endsWith('.wasm') ? 'wasm' : 'esModule'} = embed "${file}"),`);
  await writeFile(join(folder, 'config.capnp'), `
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .main)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const main :Workerd.Worker = (compatibilityDate = "2026-11-01", modules = [
${list.join('\n')}
]);
`);
  const child = spawn(join(import.meta.dirname, 'node_modules/@cloudflare/workerd-linux-64/bin/workerd'), ['serve', '--control-fd=3', 'config.capnp'], { cwd: folder, stdio: ['ignore', 'inherit', 'inherit', 'pipe'] });
  const port = await new Promise((resolve, reject) => {
    child.stdio[3].on('data', (text) => { const found = /"port":\s*(\d+)/.exec(String(text)); if (found) resolve(found[1]); });
    child.once('exit', (code) => reject(new Error(`workerd ended with ${code}`)));
  });
  return { child, origin: `http://127.0.0.1:${port}` };
}

/** The processor time of workerd in milliseconds, and its memory in MB. Clocks inside it stand still. */
export function used({ pid }) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return { cpu: 10 * (Number(fields[11]) + Number(fields[12])), mb: Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) / 256 };
}
