import { graph, init, train } from '@rlx-go/rlx';

await init();
const tokens = 65, context = 64, width = 64, heads = 4, blocks = 2, rows = 16;

// layers without a bias
const dense = (b, x, name, n, m) => x.matmul(b.param(name, 'f32', [n, m]));
const norm = (b, x, name) => x.layerNorm(b.param(name, 'f32', [width]));

function block(b, x) {
  const apart = (part) => part.reshape([rows, context, heads, width / heads]).transpose([0, 2, 1, 3]);
  const [q, k, v] = dense(b, norm(b, x, 'norm1'), 'qkv', width, 3 * width).split({ sizes: [width, width, width], axis: 2 }).map(apart);
  const seen = q.attention(k, v, undefined, { causal: true }).transpose([0, 2, 1, 3]).reshape([rows, context, width]);
  const y = x.add(dense(b, seen, 'out', width, width));
  return y.add(dense(b, dense(b, norm(b, y, 'norm2'), 'up', width, 4 * width).gelu(), 'down', 4 * width, width));
}

export const gpt = graph('gpt', (b) => {
  const table = b.param('table', 'f32', [tokens, width]);
  let x = table.embedding(b.input('tokens', 'i32', [rows, context])).add(b.param('positions', 'f32', [context, width]));
  for (let i = 0; i < blocks; i++) x = b.scope(`block${i}`, () => block(b, x));
  const logits = norm(b, x, 'norm').matmul(table.transpose([1, 0]));
  b.output('loss', logits.crossEntropyMean(b.input('next', 'i32', [rows, context])));
});

// batch gives the inputs of a step: { tokens, next }, each an Int32Array of rows · context numbers of characters
export async function learn(batch, steps = 2000) {
  const trainer = await train(gpt, { optimizer: { kind: 'adamw', beta2: 0.99, weightDecay: 0.1, clipNorm: 1 }, rate: 5e-3 });
  await trainer.run({ steps, batches: batch });
  return trainer; // its program runs, reads and saves the model
}
