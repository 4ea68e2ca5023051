// A small transformer learns to sort eight digits.
import { graph, init, train } from '@rlx-go/rlx';
import * as nn from '@rlx-go/rlx/nn';

await init();
const rows = 64, length = 8, digits = 10, width = 48;
const network = (tokens) => {
  let x = nn.positionalEmbedding(nn.embedding(tokens, digits, width), length);
  for (let block = 0; block < 2; block++) x = nn.transformerBlock(x, 4, { name: `block${block}` });
  return nn.linear(nn.layerNorm(x), digits); // [rows, length, digits]
};
const model = graph('sort', (b) => {
  const logits = network(b.input('digits', 'i32', [rows, length])), sorted = b.input('sorted', 'i32', [rows, length]);
  b.output('loss', logits.reshape([rows * length, digits]).crossEntropyMean(sorted.reshape([rows * length])));
});
const answer = graph('answer', (b) => b.output('sorted', network(b.input('digits', 'i32', [rows, length])).argmax({ axis: 2 })));

const batch = () => {
  const list = Int32Array.from({ length: rows * length }, () => digits * Math.random()), sorted = list.slice();
  for (let row = 0; row < rows; row++) sorted.subarray(row * length, (row + 1) * length).sort();
  return { digits: list, sorted };
};
const trainer = await train(model, { optimizer: { kind: 'adamw' }, rate: 2e-3, seed: 1, entries: { answer } });
for (let round = 1; round <= 15; round++) {
  await trainer.run({ steps: 20, batches: batch });
  const { digits: given, sorted } = batch(), { reading } = await trainer.program.run('answer', { digits: given }, { read: ['sorted'] });
  const got = (await reading).values.sorted, right = got.filter((digit, i) => digit === sorted[i]).length / got.length;
  console.log(`${20 * round} steps: ${(100 * right).toFixed(0)} % right. ${given.subarray(0, length).join(' ')} → ${got.subarray(0, length).join(' ')}`);
}
trainer.program.close();
