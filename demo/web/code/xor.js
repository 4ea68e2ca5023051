import { graph, init, train } from '@rlx-go/rlx';

await init();
const model = graph('xor', (b) => {
  const x = b.input('x', 'f32', [4, 2]), labels = b.input('labels', 'i32', [4]);
  const hidden = x.linear(b.param('w1', 'f32', [2, 8]), b.param('b1', 'f32', [8])).tanh();
  const logits = hidden.linear(b.param('w2', 'f32', [8, 2]), b.param('b2', 'f32', [2]));
  b.output('loss', logits.crossEntropyMean(labels));
});
const data = { x: Float32Array.of(0, 0, 0, 1, 1, 0, 1, 1), labels: Int32Array.of(0, 1, 1, 0) };

const trainer = await train(model, { optimizer: { kind: 'adam' }, rate: 0.05, seed: 1 });
const { loss, seconds } = await trainer.run({ steps: 500, batches: () => data });
console.log(`loss ${loss.toFixed(5)} after 500 steps in ${seconds.toFixed(2)} s`);
