// The small language model whose first step is timed: one block of 32 features, for characters, as that of
// js/bench/first.mjs.

const tokens = 65, context = 16, width = 32, heads = 4, rows = 16;

/** The graph of its loss, by the function `graph` of a package that may be a page's. */
export const smallGPT = (graph) => graph('gpt', (b) => {
  const dense = (x, name, n, m) => x.matmul(b.param(name, 'f32', [n, m])), norm = (x, name) => x.layerNorm(b.param(name, 'f32', [width]));
  const apart = (part) => part.reshape([rows, context, heads, width / heads]).transpose([0, 2, 1, 3]), table = b.param('table', 'f32', [tokens, width]);
  const x = table.embedding(b.input('tokens', 'i32', [rows, context])).add(b.param('positions', 'f32', [context, width]));
  const [q, k, v] = dense(norm(x, 'norm1'), 'qkv', width, 3 * width).split({ sizes: [width, width, width], axis: 2 }).map(apart);
  const seen = q.attention(k, v, undefined, { causal: true }).transpose([0, 2, 1, 3]).reshape([rows, context, width]);
  const y = x.add(dense(seen, 'out', width, width)), z = y.add(dense(dense(norm(y, 'norm2'), 'up', width, 4 * width).gelu(), 'down', 4 * width, width));
  b.output('loss', norm(z, 'norm').matmul(table.transpose([1, 0])).crossEntropyMean(b.input('next', 'i32', [rows, context])));
});

const batch = { tokens: Int32Array.from({ length: rows * context }, (_, i) => i % tokens), next: Int32Array.from({ length: rows * context }, (_, i) => (i + 1) % tokens) };

/** Makes the first step of its training; its loss, which a GPU that computes nothing does not give. */
export async function firstStep({ graph, train }, options) {
  const { program } = await train(() => smallGPT(graph), { on: 'gpu', optimizer: { kind: 'adamw' }, rate: 1e-3, ...options });
  const { reading } = await program.run('step', batch, { read: ['loss'] }), loss = await reading.then(({ values }) => values.loss[0], () => undefined);
  return { loss, close: () => program.close() };
}
