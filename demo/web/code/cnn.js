import { batches, graph, init, train } from '@rlx-go/rlx';

await init();
export const cnn = graph('cnn', (b) => {
  const same = { padLo: [1, 1], padHi: [1, 1] };
  const images = b.input('images', 'f32', ['n', 64]).mul(1 / 16).reshape(['n', 8, 8, 1]);
  const one = images.conv2d(b.param('conv1', 'f32', [3, 3, 1, 16]), b.param('bias1', 'f32', [16]), same).relu();
  const two = one.conv2d(b.param('conv2', 'f32', [3, 3, 16, 32]), b.param('bias2', 'f32', [32]), same).relu();
  const flat = two.maxPool({ sizes: [2, 2] }).reshape(['n', 512]);
  const three = flat.linear(b.param('w1', 'f32', [512, 128]), b.param('b1', 'f32', [128])).relu();
  const logits = three.linear(b.param('w2', 'f32', [128, 10]), b.param('b2', 'f32', [10]));
  b.output('loss', logits.crossEntropyMean(b.input('labels', 'i32', ['n'])));
});

// digits: { images: { dtype: 'f32', shape: [1437, 64], data }, labels: { dtype: 'i32', shape: [1437], data } }
export async function learn(digits, steps = 600) {
  const trainer = await train(cnn, { optimizer: { kind: 'adam' }, rate: 3e-3, symbols: { n: 128 } });
  await trainer.run({ steps, batches: batches(digits, { size: 128, shuffle: 1, last: 'drop' }) });
  return trainer; // its program runs, reads and saves the network
}
