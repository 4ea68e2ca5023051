// A file server for tests, benchmarks and the demo, with several mounted folders, correct MIME
// types and configurable headers. It binds to 127.0.0.1 and keeps no process alive. Other pages in
// the machine's browser cannot use it: it only reads, accepts only the names of this machine, and
// tells browsers to restrict its files to its own pages.

import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';

const types = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.mjs': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
};

/** A policy as strict as the library allows: own files only, and WebAssembly. */
export const strictCSP = [
  "default-src 'none'", "script-src 'self' 'wasm-unsafe-eval'", "worker-src 'self'", "connect-src 'self'",
  "style-src 'self'", "img-src 'self' data: blob:", "font-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
].join('; ');

/** Isolates a page from other origins, so that it may share memory among threads. */
export const isolation = { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' };

/** What every answer says: its type is no guess, and it is for pages of this origin, or for those that CORS lets read it. */
const always = { 'x-content-type-options': 'nosniff', 'cross-origin-resource-policy': 'same-origin' };

const methods = ['GET', 'HEAD'];
/** Another name that leads to this machine may be that of a page which has had it pointed here (DNS rebinding). */
const local = ['127.0.0.1', 'localhost', '[::1]'];

/** A page that is the module /page.mjs and nothing else. */
export const scriptPage = { body: '<!doctype html><link rel="icon" href="data:,"><script type="module" src="/page.mjs"></script>', type: 'text/html' };

const isText = (target) => typeof target === 'object' && 'body' in target;

// locate finds the file of a path: the longest mount that is a prefix of it wins.
function locate(mounts, path) {
  const fits = ([prefix, target]) => path === prefix || (!isText(target) && path.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`));
  const [prefix, target] = Object.entries(mounts).filter(fits).sort((a, b) => b[0].length - a[0].length)[0] ?? [];
  if (prefix === undefined || isText(target)) return target;
  const rest = normalize(path.slice(prefix.length) || '.');
  // Of a file's own path nothing is left. Names that begin with a dot are '..', or of files that are nobody's.
  return rest.split(sep).some((name) => name !== '.' && name.startsWith('.')) ? undefined : join(target, rest);
}

async function fileAt(name) {
  const info = await stat(name).catch(() => undefined);
  return info?.isDirectory() ? fileAt(join(name, 'index.html')) : info && { name, size: info.size };
}

// pathOf returns the requested path, undefined if it is invalid.
function pathOf({ url }) {
  try {
    return decodeURIComponent(new URL(url, 'http://localhost').pathname);
  } catch {
    return undefined;
  }
}

async function answer(request, response, { mounts, headers, policies, hosts }) {
  const refuse = (status, text, more) => {
    response.writeHead(status, { 'content-type': types['.txt'], ...headers, ...more });
    response.end(`${text}\n`);
  };
  if (![...local, ...hosts].includes(request.headers.host?.replace(/:\d*$/, ''))) return refuse(403, 'no host of this name');
  if (!methods.includes(request.method)) return refuse(405, 'method not allowed', { allow: methods.join(', ') });
  const path = pathOf(request);
  if (path === undefined) return refuse(400, 'bad request');
  const target = locate(mounts, path);
  const found = target && (isText(target) ? target : await fileAt(target));
  if (!found) return refuse(404, `not found: ${path}`);
  const type = found.type ?? types[extname(found.name ?? path)] ?? 'application/octet-stream';
  response.writeHead(200, { 'content-type': type, 'cache-control': 'no-store', ...headers, ...found.headers, ...policies[path] && { 'content-security-policy': policies[path] } });
  if (request.method === 'HEAD') return response.end();
  return isText(found) ? response.end(found.body) : pipeline(createReadStream(found.name), response).catch(() => {}); // whoever asked has gone
}

/**
 * Serves files on 127.0.0.1.
 * @param {Record<string, string | {body: string | Buffer, type?: string, headers?: object}>} mounts
 *   URL prefixes to folders (or single files), or URL paths to texts made on the spot.
 * @param {{csp?: string, policies?: Record<string, string>, headers?: Record<string, string>, hosts?: string[], port?: number}} options csp becomes the
 *   Content-Security-Policy of every answer, but for the paths of policies, which have others; hosts are names that it answers to beside this machine's own; port 0, the default, takes any free one.
 * @returns {Promise<{origin: string, requests: string[], server: import('node:http').Server, close: () => Promise<void>}>}
 *   requests lists the paths asked for so far, in order; server.ref() keeps the process alive.
 */
export async function serve(mounts, { csp, policies = {}, headers = {}, hosts = [], port = 0 } = {}) {
  const all = { ...always, ...csp && { 'content-security-policy': csp }, ...headers };
  const requests = [];
  const server = createServer((request, response) => {
    requests.push(request.url);
    answer(request, response, { mounts, headers: all, policies, hosts }).catch((error) => {
      console.error(error);
      if (response.headersSent) return response.destroy();
      response.writeHead(500, { 'content-type': types['.txt'], ...all });
      response.end('internal error\n');
    });
  });
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  server.unref();
  const close = () => new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
  return { origin: `http://127.0.0.1:${server.address().port}`, requests, server, close };
}
