// Optimisers race down Rosenbrock's valley: from the same place, to the minimum at (1, 1).
import { graph, init, program } from '@rlx-go/rlx';
import { plot } from './draw.js';

await init();
const valley = graph('valley', (b) => {
  const x = b.param('x', 'f32', []), y = b.param('y', 'f32', []);
  b.output('loss', x.neg().add(1).square().add(y.sub(x.square()).square().mul(100)));
});
const paths = {}, losses = {}, steps = 500;
async function race(name, optimizer, rate) {
  const racer = await program({ name, entries: { step: valley.step({ optimizer }) } });
  await racer.load({ x: { dtype: 'f32', shape: [], data: Float32Array.of(-1.5) }, y: { dtype: 'f32', shape: [], data: Float32Array.of(2) } }, { allowMissing: true });
  const path = { x: new Float32Array(steps), y: new Float32Array(steps) }, height = new Float32Array(steps);
  for (let step = 0; step < steps; step++) {
    const { reading } = await racer.run('step', { lr: rate }, { read: ['x', 'y', 'loss'] });
    const { values } = await reading;
    path.x[step] = values.x[0];
    path.y[step] = values.y[0];
    height[step] = Math.max(1e-9, values.loss[0]);
  }
  paths[name] = path;
  losses[name] = { x: height.map((_, step) => step), y: height };
  plot('Paths', { ...paths, minimum: { x: [1], y: [1], dots: true } }, { x: [-2, 2], y: [-1, 3] });
  plot('Height', losses, { log: true });
  racer.close();
}
await race('gradient descent', { kind: 'sgd' }, 1.5e-3);
await race('momentum', { kind: 'sgd', momentum: 0.9 }, 7e-4);
await race('Adam', { kind: 'adam' }, 1e-1);
await race('RMSprop', { kind: 'rmsprop' }, 2e-2);
await race('Lion', { kind: 'lion' }, 2e-2);
