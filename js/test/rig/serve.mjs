// A file server for tests, benchmarks and the demo: a few mounted folders, right MIME
// types, headers of one's choice. It binds to 127.0.0.1 and keeps no process alive.

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

/** A page that is the module /page.mjs and nothing else. */
export const scriptPage = { body: '<!doctype html><link rel="icon" href="data:,"><script type="module" src="/page.mjs"></script>', type: 'text/html' };

const isText = (target) => typeof target === 'object' && 'body' in target;

// locate finds what a path stands for: the longest mount that is a prefix of it wins.
function locate(mounts, path) {
  const fits = ([prefix, target]) => path === prefix || (!isText(target) && path.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`));
  const [prefix, target] = Object.entries(mounts).filter(fits).sort((a, b) => b[0].length - a[0].length)[0] ?? [];
  if (prefix === undefined || isText(target)) return target;
  const rest = normalize(path.slice(prefix.length) || '.');
  return rest.split(sep).includes('..') ? undefined : join(target, rest); // of a file's own path nothing is left
}

async function fileAt(name) {
  const info = await stat(name).catch(() => undefined);
  return info?.isDirectory() ? fileAt(join(name, 'index.html')) : info && { name, size: info.size };
}

// pathOf gives the path that is asked for, undefined if it is none.
function pathOf({ url }) {
  try {
    return decodeURIComponent(new URL(url, 'http://localhost').pathname);
  } catch {
    return undefined;
  }
}

async function answer(request, response, { mounts, headers }) {
  const path = pathOf(request);
  if (path === undefined) {
    response.writeHead(400, { 'content-type': types['.txt'], ...headers });
    return response.end('bad request\n');
  }
  const target = locate(mounts, path);
  const found = target && (isText(target) ? target : await fileAt(target));
  if (!found) {
    response.writeHead(404, { 'content-type': types['.txt'], ...headers });
    return response.end(`not found: ${path}\n`);
  }
  const type = found.type ?? types[extname(found.name ?? path)] ?? 'application/octet-stream';
  response.writeHead(200, { 'content-type': type, 'cache-control': 'no-store', ...headers, ...found.headers });
  if (request.method === 'HEAD') return response.end();
  return isText(found) ? response.end(found.body) : pipeline(createReadStream(found.name), response).catch(() => {}); // whoever asked has gone
}

/**
 * Serves files on 127.0.0.1.
 * @param {Record<string, string | {body: string | Buffer, type?: string, headers?: object}>} mounts
 *   URL prefixes to folders (or single files), or URL paths to texts made on the spot.
 * @param {{csp?: string, headers?: Record<string, string>, port?: number}} options csp becomes the
 *   Content-Security-Policy of every answer; port 0, the default, takes any free one.
 * @returns {Promise<{origin: string, requests: string[], server: import('node:http').Server, close: () => Promise<void>}>}
 *   requests lists the paths asked for so far, in order; server.ref() keeps the process alive.
 */
export async function serve(mounts, { csp, headers = {}, port = 0 } = {}) {
  const all = csp ? { 'content-security-policy': csp, ...headers } : headers;
  const requests = [];
  const server = createServer((request, response) => {
    requests.push(request.url);
    answer(request, response, { mounts, headers: all }).catch((error) => {
      console.error(error);
      if (response.headersSent) return response.destroy();
      response.writeHead(500, { 'content-type': types['.txt'] });
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
