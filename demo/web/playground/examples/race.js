// Optimisers race down Rosenbrock's valley: from the same place, to the minimum at (1, 1).
import { graph, init, program } from '@rlx-go/rlx';
import { plot } from './draw.js';

await init();
const valley = graph('valley', (b) => {
  const x = b.param('x', 'f32', []), y = b.param('y', 'f32', []);
  b.output('loss', x.neg().add(1).square().add(y.sub(x.square()).square().mul(100)));
});
const racers = {
  'gradient descent': [{ kind: 'sgd' }, 1.5e-3],
  momentum: [{ kind: 'sgd', momentum: 0.9 }, 7e-4],
  Adam: [{ kind: 'adam' }, 1e-1],
  RMSprop: [{ kind: 'rmsprop' }, 2e-2],
  Lion: [{ kind: 'lion' }, 2e-2],
};
const paths = {}, losses = {};
for (const [name, [optimizer, rate]] of Object.entries(racers)) {
  const racer = await program({ name, entries: { step: valley.step({ optimizer }) } });
  await racer.load({ x: { dtype: 'f32', shape: [], data: Float32Array.of(-1.5) }, y: { dtype: 'f32', shape: [], data: Float32Array.of(2) } }, { allowMissing: true });
  const path = { x: [], y: [] }, loss = { x: [], y: [] };
  for (let step = 0; step < 500; step++) {
    const { reading } = await racer.run('step', { lr: rate }, { read: ['x', 'y', 'loss'] });
    const { values } = await reading;
    path.x.push(values.x[0]);
    path.y.push(values.y[0]);
    loss.x.push(step);
    loss.y.push(Math.max(1e-9, values.loss[0]));
  }
  paths[name] = path;
  losses[name] = loss;
  plot('Paths', { ...paths, minimum: { x: [1], y: [1], dots: true } }, { x: [-2, 2], y: [-1, 3] });
  plot('Height', losses, { log: true });
  racer.close();
}
