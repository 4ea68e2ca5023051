// The kernels that convert a texture to elements of an input. The first filters rows; the second filters columns and packs.
// Between them values are in 0 to 255 and multiplied by alpha.

import type { Layout } from './layout.js';

/** The number of threads of a workgroup. */
export const threads = 64;

/** The number of 32-bit words of a job: two axes of `from`, `start`, `to`, `origin` and `scale`, then the first element and whether rows are not filtered. */
export const jobWords = 12;

/** The job of a picture, and the filter of {@link taps}. */
const shared = `
struct Axis { source: i32, start: i32, to: i32, origin: f32, scale: f32 }
struct Job { x: Axis, y: Axis, first: u32, direct: u32 }
@group(0) @binding(0) var<storage, read> job: Job;
@group(0) @binding(1) var picture: texture_2d<f32>;

fn texel(at: vec2i) -> vec4f {
  let t = round(textureLoad(picture, at, 0) * 255);
  return vec4f(t.rgb * (t.a / 255), t.a);
}

struct Taps { lo: i32, hi: i32, center: f32, support: f32 }

fn tapsOf(axis: Axis, i: i32) -> Taps {
  let support = max(axis.scale, 1);
  let center = axis.origin + (f32(i) + 0.5) * axis.scale;
  return Taps(max(0, i32(floor(center - support + 0.5))), min(axis.source, i32(floor(center + support + 0.5))), center, support);
}

fn weight(t: Taps, at: i32) -> f32 { return max(0, 1 - abs((f32(at) + 0.5 - t.center) / t.support)); }
`;

/** Writes each row of the picture at the width that it has in the input. */
export const rowsKernel = `${shared}
@group(0) @binding(2) var rows: texture_storage_2d<rgba32float, write>;

@compute @workgroup_size(${threads}) fn main(@builtin(global_invocation_id) id: vec3u) {
  let at = vec2i(id.xy);
  if (at.x >= job.x.to) { return; }
  let t = tapsOf(job.x, at.x);
  var sum = vec4f();
  var total = 0.0;
  for (var x = t.lo; x < t.hi; x++) {
    let w = weight(t, x);
    sum += w * texel(vec2i(x, at.y));
    total += w;
  }
  textureStore(rows, at, sum / total);
}
`;

/** The expression of channel c of the colour v, in 0 to 255. Luma is exact for whole numbers: its weights are those of Pillow. */
const channel = ({ depth }: Layout): string => depth === 1
  ? 'dot(v.rgb, vec3f(19595, 38470, 7471)) / 65536'
  : depth === 3 ? 'v[c]' : 'select(v[c] * 255 / max(v.a, 1e-6), v.a, c == 3)';

/** The statement that puts value e in 0 to 255 into element k of a word. */
const put = ({ bytes }: Layout): string => bytes === 4
  ? 'word = bitcast<u32>(e / 255);'
  : bytes === 2
    ? 'word = insertBits(word, pack2x16float(vec2f(e / 255, 0)), 16 * k, 16);'
    : 'word = insertBits(word, u32(clamp(e + 0.5, 0, 255)), 8 * k, 8);';

/** Writes the words that have elements of the picture, and keeps other elements in these. */
export function packKernel(layout: Layout): string {
  const { height, width, depth, channels, bytes } = layout, perWord = 4 / bytes, pixels = height * width;
  const place = channels === 'first' ? `let c = i / ${pixels}; let p = i % ${pixels};` : `let c = i % ${depth}; let p = i / ${depth};`;
  return `${shared}
@group(0) @binding(2) var<storage, read_write> elements: array<u32>;

fn filtered(at: vec2i) -> vec4f {
  let p = at - vec2i(job.x.start, job.y.start);
  if (any(p < vec2i()) || any(p >= vec2i(job.x.to, job.y.to))) { return vec4f(); }
  if (job.direct == 1) { return texel(p); }
  let t = tapsOf(job.y, p.y);
  var sum = vec4f();
  var total = 0.0;
  for (var y = t.lo; y < t.hi; y++) {
    let w = weight(t, y);
    sum += w * textureLoad(picture, vec2i(p.x, y), 0);
    total += w;
  }
  return sum / total;
}

@compute @workgroup_size(${threads}) fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
  let at = job.first / ${perWord} + (group.y * groups.x + group.x) * ${threads} + lane;
  if (at >= arrayLength(&elements)) { return; }
  var word = elements[at];
  for (var k = 0u; k < ${perWord}; k++) {
    let i = at * ${perWord} + k - job.first; // of an element before the first one, a large number
    if (i >= ${pixels * depth}) { continue; }
    ${place}
    let v = filtered(vec2i(i32(p % ${width}), i32(p / ${width})));
    let e = ${channel(layout)};
    ${put(layout)}
  }
  elements[at] = word;
}
`;
}
