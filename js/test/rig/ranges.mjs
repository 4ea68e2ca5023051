// A server that answers ranges, as of large files.

import { createServer } from 'node:http';

/** A server of files by their paths, which counts what it sends. `ranges: false` sends whole files; `seen.version` is their etag, `seen.time` when they were modified. */
export async function serve(t, files, { ranges = true } = {}) {
  const seen = { bytes: 0, requests: 0, version: '', time: '' };
  const server = createServer((request, response) => {
    const body = files[decodeURIComponent(request.url.slice(1)).replace(/\?.*/, '')], range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    seen.requests++;
    if (!body) return response.writeHead(404).end('none');
    if (!range || !ranges) return response.writeHead(200, { 'content-length': body.length }).end(body);
    const part = body.subarray(Number(range[1]), Number(range[2]) + 1);
    seen.bytes += part.length;
    return response.writeHead(206, { 'content-range': `bytes ${range[1]}-${Number(range[1]) + part.length - 1}/${body.length}`, ...seen.version && { etag: seen.version }, ...seen.time && { 'last-modified': seen.time } }).end(part);
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => server.close());
  return { url: `http://127.0.0.1:${server.address().port}/`, seen };
}
