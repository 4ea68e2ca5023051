// A function and its first four derivatives, each a graph derived from the one before: in TypeScript.
import { type Graph, graph, init, program } from '@rlx-go/rlx';
import { plot } from './draw.js';

type Curve = { x: Float32Array; y: Float32Array };

await init();
const f = graph('f', (b) => {
  const x = b.input('x', 'f32');
  b.output('y', x.mul(2).sin().mul(x.square().neg().exp())); // sin(2x) exp(-x²): try another one
});

const points = 200, xs = Float32Array.from({ length: points }, (_, i) => 6 * i / (points - 1) - 3);
const entries: Record<string, Graph> = { f: f.vmap(points, { x: 0 }) }, outputs: Record<string, string> = { f: 'y' };
for (let order = 1; order <= 4; order++) {
  const name = `f${"'".repeat(order)}`;
  entries[name] = f.nth('y', 'x', order).vmap(points, { x: 0 });
  outputs[name] = `d${order}/y`;
}

const calculus = await program({ entries });
const curves: Record<string, Curve> = {};
for (const [name, output] of Object.entries(outputs)) {
  const { reading } = await calculus.run(name, { x: xs }, { read: [output] });
  curves[name] = { x: xs, y: (await reading).values[output] as Float32Array };
}
plot('Derivatives', curves, { y: [-8, 8] });
console.log(`f'(0) is ${curves["f'"]!.y[100]!.toFixed(2)}: it is 2 exactly at 0`);
calculus.close();
