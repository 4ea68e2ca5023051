// A layer of 7 × 7 filters learns what the canvas does to moving pictures. No script reads their pixels on their way to the GPU.
import { graph, init, train } from '@rlx-go/rlx';
import * as nn from '@rlx-go/rlx/nn';
import { imageInput } from '@rlx-go/rlx/pixels';
import { picture } from './draw.js';

await init();
const side = 96, filter = 'blur(2px) invert(1)'; // any filter of CSS: contrast(2), brightness(0.5) blur(1px), …

// What is seen through the filter: discs that fly about, and what it makes of them.
const canvas = (filter: string) => Object.assign(new OffscreenCanvas(side, side).getContext('2d')!, { filter });
const plain = canvas('none'), filtered = canvas(filter);
function draw(time: number) {
  plain.fillStyle = '#202020';
  plain.fillRect(0, 0, side, side);
  for (let i = 0; i < 7; i++) {
    plain.fillStyle = `hsl(0 0% ${35 + 10 * i}%)`;
    plain.beginPath();
    plain.arc(side * (0.5 + 0.4 * Math.sin(time * (0.7 + 0.13 * i) + i)), side * (0.5 + 0.4 * Math.cos(time * (0.9 - 0.07 * i) + 2 * i)), 5 + 2 * i, 0, 7);
    plain.fill();
    plain.fillRect(side * (0.5 + 0.45 * Math.sin(1.7 * time + 2 * i)), 12 * i, 3, 12);
  }
  filtered.drawImage(plain.canvas, 0, 0);
}

const model = graph('filter', (b) => {
  const x = b.input('x', 'f32', [1, side, side, 1]), want = b.input('want', 'f32', [1, side, side, 1]);
  const guess = nn.conv2d(x, 1, 7, { padding: 'same' });
  b.output('guess', guess.reshape([side, side]));
  b.output('loss', guess.sub(want).square().mean());
});
const trainer = await train(model, { optimizer: { kind: 'adam' }, rate: 3e-3, seed: 1 });
const { program } = trainer;
const inputs = { x: imageInput(program, 'step', 'x'), want: imageInput(program, 'step', 'want') };

for (let round = 0, time = 0; round < 60; round++) {
  const frame = async () => {
    draw(time += 0.21);
    return { x: await inputs.x.copy(plain.canvas), want: await inputs.want.copy(filtered.canvas) };
  };
  await trainer.run({ steps: 20, batches: frame });
  picture('What the layer makes of it', { width: side, height: side, range: [0, 1], data: await program.read('guess') });
  for (const [title, { canvas }] of [['The picture', plain], [`Through ${filter}`, filtered]] as const) {
    const { data } = canvas.getContext('2d')!.getImageData(0, 0, side, side);
    picture(title, { width: side, height: side, range: [0, 255], data: data.filter((_, i) => i % 4 === 0) });
  }
}
for (const input of Object.values(inputs)) input.close();
program.close();
