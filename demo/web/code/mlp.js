import { batches, graph, init, train } from '@rlx-go/rlx';

await init();
export const mlp = graph('mlp', (b) => {
  const images = b.input('images', 'f32', ['n', 64]).mul(1 / 16);
  const one = images.linear(b.param('w1', 'f32', [64, 128]), b.param('b1', 'f32', [128])).relu();
  const two = one.linear(b.param('w2', 'f32', [128, 64]), b.param('b2', 'f32', [64])).relu();
  const logits = two.linear(b.param('w3', 'f32', [64, 10]), b.param('b3', 'f32', [10]));
  b.output('loss', logits.crossEntropyMean(b.input('labels', 'i32', ['n'])));
});

// digits: { images: { dtype: 'f32', shape: [1437, 64], data }, labels: { dtype: 'i32', shape: [1437], data } }
export async function learn(digits, steps = 600) {
  const trainer = await train(mlp, { optimizer: { kind: 'adam' }, rate: 2e-3, symbols: { n: 128 } });
  await trainer.run({ steps, batches: batches(digits, { size: 128, shuffle: 1, last: 'drop' }) });
  return trainer; // its program runs, reads and saves the network
}
