// Factorisations and solutions of one matrix on the CPU of a page, one thread, in Node: milliseconds to compile, and
// microseconds for each run of several in a submission, the least of five.
//
//   node js/bench/factors.mjs [OPS [SIZES]]      as in: node js/bench/factors.mjs cholesky,solve 64,67

import { closeCompiler, graph, init, program } from '../dist/index.js';

const triangle = { leftSide: true, lower: true };
const results = {
  cholesky: ({ x }) => [x.cholesky()],
  lu: ({ x }) => x.lu(),
  qr: ({ x }) => x.qr(),
  triangle: ({ l, y }) => [l.triangularSolve(y, triangle)],
  vector: ({ l, y }) => [l.triangularSolve(y.sum([-1], true), triangle)],
  solve: ({ x, y }) => [x.solve(y)],
  inv: ({ x }) => [x.inv()],
  eigh: ({ x }) => x.eigh(),
  svd: ({ x }) => x.svd(),
};
const [names = Object.keys(results).join(), sizes = '8,16,32,64,67,96,128,256'] = process.argv.slice(2);

/** A symmetric positive definite matrix, a well-conditioned triangle and a matrix of right sides. */
function operands(n) {
  const of = (f) => Float32Array.from({ length: n * n }, (_, at) => f(Math.floor(at / n), at % n));
  const wave = (i, j) => Math.sin(1 + 13.7 * Math.min(i, j) + 7.3 * Math.max(i, j));
  return { x: of((i, j) => wave(i, j) + (i === j ? n : 0)), l: of((i, j) => i === j ? 2 : i > j ? wave(i, j) / n : 0), y: of((i, j) => Math.cos(3.1 * i + 1.7 * j)) };
}

async function measure(name, n) {
  const values = operands(n), module = graph(name, (b) => {
    const inputs = Object.fromEntries(Object.keys(values).map((key) => [key, b.input(key, 'f32', [n, n])]));
    for (const [i, result] of results[name](inputs).entries()) b.output(`result ${i}`, result);
    b.output('read', inputs.x.add(inputs.l).add(inputs.y).sum()); // of few elements
  });
  const begin = performance.now(), made = await program({ entries: { main: module } }, { on: 'cpu', worker: false }), opened = performance.now();
  await made.bind('main', values);
  const time = async (steps) => {
    const start = performance.now();
    await (await made.run('main', {}, { steps, read: ['read'] })).reading;
    return (performance.now() - start) / steps;
  };
  let steps = 1;
  while (steps < 64 && await time(steps) * steps < 60) steps *= 2; // of a run, at most
  let least = Infinity;
  for (let i = 0; i < 5; i++) least = Math.min(least, await time(steps));
  made.close();
  console.log(`${name.padEnd(10)}${`${n}`.padStart(5)}${(opened - begin).toFixed(0).padStart(7)} ms${(1000 * least).toFixed(1).padStart(11)} µs`);
}

await init({ compileWorker: false, worker: false });
for (const name of names.split(',')) for (const n of sizes.split(',')) await measure(name, Number(n));
closeCompiler();
