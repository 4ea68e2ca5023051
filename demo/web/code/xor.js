import { graph, init, train } from '@rlx-go/rlx';
import { linear } from '@rlx-go/rlx/nn';

await init();
const model = graph('xor', (b) => {
  const x = b.input('x', 'f32', [4, 2]);
  const labels = b.input('labels', 'i32', [4]);
  const logits = linear(linear(x, 8).tanh(), 2);
  b.output('loss', logits.crossEntropyMean(labels));
});
const x = Float32Array.of(0, 0, 0, 1, 1, 0, 1, 1);
const labels = Int32Array.of(0, 1, 1, 0);
const options = { optimizer: { kind: 'adam' }, rate: 0.05 };
const trainer = await train(model, options);
const { loss, seconds } = await trainer.run({
  steps: 500, batches: () => ({ x, labels }) });
console.log(`loss ${loss.toFixed(5)}, ${seconds.toFixed(2)} s`);
