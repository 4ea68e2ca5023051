// Networks of several families, by the operations that an adapter of each library has, so that all
// libraries compute the same. An adapter `o` has its own layout of images; filters are [rows,
// columns, in, out], and all data is made here:
//
//   image(x)                a picture [batch, rows, columns, channels] of the job's input
//   conv(x, f, b, stride)   with zeros around it, so that stride 1 keeps the size
//   patches(x, f, b)        a convolution whose stride is its filter's size
//   pool(x), up(x)          the maximum of 2 × 2, each element 2 × 2 times
//   join(x, y)              channels of both
//   average(x)              [batch, channels]
//   tokens(x)               [batch, rows · columns, channels]
//   relu, gelu, add
//   dense(x, w, b)          along the last axis
//   norm(x, scale, bias)    along the last axis
//   attend(qkv, heads)      [batch, n, 3 · width] to [batch, n, width]
//   first(x)                token 0: [batch, width]
//   embed(table, ids)
//   lstm(x, wx, wh, b)      x [batch, time, features], gates i, f, g, o; the last hidden state
//   weight(name, shape)     a parameter, drawn alike everywhere

import { randoms } from './jobs.mjs';

/** A weight's values: uniform, of a size that keeps activations near 1; scales are 1, biases 0. */
export function weightValues(name, shape) {
  const n = shape.reduce((a, b) => a * b, 1);
  if (shape.length === 1) return new Float32Array(n).fill(name.endsWith('scale') ? 1 : 0);
  const inputs = n / shape.at(-1);
  return randoms(n, 300 + name.length + n % 97, Math.sqrt(3 / (name === 'table' || name === 'positions' ? 16 : inputs)));
}

/** A convolution of `size` × `size` with its weights. */
const conv = (o, x, name, size, from, to, stride = 1) => o.conv(x, o.weight(`${name}/filter`, [size, size, from, to]), o.weight(`${name}/bias`, [to]), stride);
const dense = (o, x, name, from, to) => o.dense(x, o.weight(`${name}/weight`, [from, to]), o.weight(`${name}/bias`, [to]));
const norm = (o, x, name, width) => o.norm(x, o.weight(`${name}/scale`, [width]), o.weight(`${name}/bias`, [width]));

/** Residual stages of two blocks, as ResNet's for small pictures. */
function resnet(o, x, { widths }) {
  let h = o.relu(conv(o, o.image(x), 'stem', 3, 3, widths[0])), from = widths[0];
  for (const [stage, to] of widths.entries()) {
    for (let block = 0; block < 2; block++) {
      const name = `stage${stage}/${block}`, stride = stage > 0 && block === 0 ? 2 : 1;
      const inner = conv(o, o.relu(conv(o, h, `${name}/a`, 3, from, to, stride)), `${name}/b`, 3, to, to);
      h = o.relu(o.add(inner, from === to ? h : conv(o, h, `${name}/skip`, 1, from, to, stride)));
      from = to;
    }
  }
  return dense(o, o.average(h), 'head', from, 10);
}

/** Down by pools and up again, each level joined with its like. */
function unet(o, x, { widths }) {
  const twice = (h, name, from, to) => o.relu(conv(o, o.relu(conv(o, h, `${name}/a`, 3, from, to)), `${name}/b`, 3, to, to));
  let h = twice(o.image(x), 'level0', 3, widths[0]);
  const levels = [h];
  for (let i = 1; i < widths.length; i++) levels.push(h = twice(o.pool(h), `level${i}`, widths[i - 1], widths[i]));
  for (let i = widths.length - 2; i >= 0; i--) h = twice(o.join(levels[i], conv(o, o.up(h), `up${i}`, 3, widths[i + 1], widths[i])), `back${i}`, 2 * widths[i], widths[i]);
  return conv(o, h, 'head', 1, widths[0], 3);
}

/** Blocks of an encoder: normed before (ViT) or after (BERT). */
function encoder(o, x, { width, heads, blocks }, before) {
  let h = x;
  for (let i = 0; i < blocks; i++) {
    const at = `block${i}`;
    const attended = (y) => dense(o, o.attend(dense(o, y, `${at}/qkv`, width, 3 * width), heads), `${at}/out`, width, width);
    const hidden = (y) => dense(o, o.gelu(dense(o, y, `${at}/up`, width, 4 * width)), `${at}/down`, 4 * width, width);
    const one = (y) => norm(o, y, `${at}/norm1`, width), two = (y) => norm(o, y, `${at}/norm2`, width);
    h = before ? o.add(h, attended(one(h))) : one(o.add(h, attended(h)));
    h = before ? o.add(h, hidden(two(h))) : two(o.add(h, hidden(h)));
  }
  return h;
}

function vit(o, x, { size, patch, width, ...rest }) {
  const tokens = o.tokens(o.patches(o.image(x), o.weight('patch/filter', [patch, patch, 3, width]), o.weight('patch/bias', [width])));
  const h = encoder(o, o.add(tokens, o.weight('positions', [(size / patch) ** 2, width])), { width, ...rest }, true);
  return dense(o, norm(o, o.first(h), 'norm', width), 'head', width, 10);
}

function bert(o, ids, { vocab, context, width, ...rest }) {
  const x = norm(o, o.add(o.embed(o.weight('table', [vocab, width]), ids), o.weight('positions', [context, width])), 'norm', width);
  return dense(o, o.first(encoder(o, x, { width, ...rest }, false)), 'head', width, 2);
}

function lstm(o, x, { features, width }) {
  const gates = 4 * width;
  return dense(o, o.lstm(x, o.weight('wx', [features, gates]), o.weight('wh', [width, gates]), o.weight('b', [gates])), 'head', width, 10);
}

/** The networks by name: what they get, and the function. */
const networks = {
  resnet: { shape: ({ batch, size }) => [batch, size, size, 3], build: resnet },
  unet: { shape: ({ batch, size }) => [batch, size, size, 3], build: unet },
  vit: { shape: ({ batch, size }) => [batch, size, size, 3], build: vit },
  bert: { shape: ({ batch, context }) => [batch, context], build: bert, ids: true },
  lstm: { shape: ({ batch, time, features }) => [batch, time, features], build: lstm },
};

/** A job's network: { shape, data, ids, build(o, x) }. */
export function networkOf({ name, ...options }) {
  const { shape: shapeOf, build, ids } = networks[name], shape = shapeOf(options), n = shape.reduce((a, b) => a * b, 1);
  const data = ids ? Int32Array.from(randoms(n, 9), (u) => Math.floor((u + 1) / 2 * options.vocab)) : randoms(n, 9);
  return { shape, data, ids, build: (o, x) => build(o, x, options) };
}
