// Functions over a builder: results, gradients and second derivatives are those of ir/irtest/cases/functions.json, as in Go.
// The graphs of special functions and distributions are Go's, whose values Go's tests hold to mpmath and SciPy.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { before, describe, test } from 'node:test';
import { graph, init, program } from '../dist/index.js';
import * as cmplx from '../dist/cmplx.js';
import * as dist from '../dist/dist.js';
import * as image from '../dist/image.js';
import * as losses from '../dist/losses.js';
import * as signal from '../dist/signal.js';
import * as special from '../dist/special.js';
import * as stats from '../dist/stats.js';

before(() => init({ compileWorker: false, worker: false }));

const of = (f) => ({ x }) => f(x);
const split = (z) => [z.real(), z.imag()];
const complex = ({ re, im }) => re.complex(im);
const ofParts = (f) => (in_) => split(f(complex(in_)));
const ofTwo = (f) => (in_) => split(f(complex(in_), in_.re2.complex(in_.im2)));

const ofEig = (x) => {
  const { w, v } = cmplx.eig(x);
  return [...split(w), ...split(v)];
};

/** The functions of the cases, by name. */
const functions = {
  'image.grid_sample 3d': ({ x, grid }) => image.gridSample(x, grid),
  'image.grid_sample infinite': ({ x, grid }) => image.gridSample(x, grid, { alignCorners: true }),
  'image.affine_grid': ({ theta }) => image.affineGrid(theta, [3, 4]),
  'image.affine_grid align': ({ theta }) => image.affineGrid(theta, [3, 4], true),
  'image.affine_grid 3d': ({ theta }) => image.affineGrid(theta, [2, 3, 2]),
  'image.resize linear': ({ x }) => image.resize(x, [7, 3]),
  'image.resize linear align': ({ x }) => image.resize(x, [7, 3], { alignCorners: true }),
  'image.resize linear antialias': ({ x }) => image.resize(x, [3, 4], { antialias: true }),
  'image.resize linear antialias up': ({ x }) => image.resize(x, [5, 2], { antialias: true }),
  'image.resize cubic': ({ x }) => image.resize(x, [7, 3], { mode: 'cubic' }),
  'image.resize cubic antialias': ({ x }) => image.resize(x, [3, 12], { mode: 'cubic', antialias: true }),
  'image.resize nearest': ({ x }) => image.resize(x, [7, 3], { mode: 'nearest' }),
  'image.resize nearest floor': ({ x }) => image.resize(x, [7, 3], { mode: 'nearest', floor: true }),
  'image.resize one axis': ({ x }) => image.resize(x, [8]),
  'image.resize three axes': ({ x }) => image.resize(x, [3, 2, 4]),
  'image.resize lanczos': ({ x }) => image.resize(x, [3, 12], { mode: 'lanczos', antialias: true }),
  'image.pad symmetric': ({ x }) => image.pad(x, [0, 5, 1], [0, 2, 0], 'symmetric'),
  'image.pad reflect': ({ x }) => image.pad(x, [0, 7, 1], [0, 9, 0], 'reflect'),
  'image.pad wrap': ({ x }) => image.pad(x, [0, 4, 1], [1, 8, 0], 'wrap'),
  'image.pad edge': ({ x }) => image.pad(x, [0, 2, 1], [0, 1, 3], 'edge'),
  'image.pad integers': ({ x }) => image.pad(x, [0, 4], [0, 4], 'symmetric'),
  'image.unfold': ({ x }) => image.unfold(x, [2, 3], { pad: [1, 0], stride: [2, 1], dilation: [1, 2] }),
  'image.fold': ({ x }) => image.fold(x, [4, 5], [2, 3], { pad: 1, stride: 2 }),

  'signal.interp': ({ x, xp, fp }) => signal.interp(x, xp, fp),
  'signal.interp edges': ({ x, xp, fp }) => signal.interp(x, xp, fp),
  'signal.dct first axis': ({ x }) => signal.dct(x, 0),

  'cmplx.abs': (in_) => cmplx.abs(complex(in_)),
  'cmplx.abs edges': (in_) => cmplx.abs(complex(in_)),
  'cmplx.angle': (in_) => cmplx.angle(complex(in_)),
  'cmplx.angle edges': (in_) => cmplx.angle(complex(in_)),
  'cmplx.exp edges': ofParts(cmplx.exp),
  'cmplx.sqrt edges': ofParts(cmplx.sqrt),
  'cmplx.eig': ({ x }) => ofEig(x),
  'cmplx.eig complex': (in_) => ofEig(complex(in_)),
  'cmplx.eigvals': ({ x }) => split(cmplx.eigvals(x)),
  'cmplx.eigvals edges': ({ x }) => split(cmplx.eigvals(x)),
  'cmplx.polar': ({ r, theta }) => split(cmplx.polar(r, theta)),
  'cmplx.pow': ofTwo(cmplx.pow),
  'cmplx.mul': ofTwo((z, w) => z.mul(w)),
  'cmplx.div': ofTwo((z, w) => z.div(w)),

  'stats.nan_sum': of((x) => stats.nanSum(x, [1])),
  'stats.nan_sum all': of((x) => stats.nanSum(x)),
  'stats.nan_mean': of((x) => stats.nanMean(x, [1])),
  'stats.nan_mean two': of((x) => stats.nanMean(x, [1])),
  'stats.nan_var': of((x) => stats.nanVar(x, [1], 1)),
  'stats.nan_var two': of((x) => stats.nanVar(x, [-1])),
  'stats.nan_std two': of((x) => stats.nanStd(x, [1], 1)),
  'stats.nan_min': of((x) => stats.nanMin(x, [1])),
  'stats.nan_max': of((x) => stats.nanMax(x, [1])),
  'stats.nan_max two': of((x) => stats.nanMax(x, [1])),
  'stats.cov': of((x) => stats.cov(x)),
  'stats.corr_coef': of((x) => stats.corrCoef(x)),
  'stats.cdist equal': ({ x, y }) => stats.cdist(x, y),
  'stats.kth_smallest': of((x) => stats.kthSmallest(x, 1)),
  'stats.arg_partition': of((x) => stats.argPartition(x, 1)),

  'losses.triplet_margin': ({ anchor, positive, negative }) => losses.tripletMargin(anchor, positive, negative),
  'losses.triplet_margin swap': ({ anchor, positive, negative }) => losses.tripletMargin(anchor, positive, negative, { margin: 2, p: 3, swap: true, reduction: 'sum' }),
  'losses.margin_ranking': ({ x, y, target }) => losses.marginRanking(x, y, target, { margin: 0.5, reduction: 'none' }),
  'losses.hinge_embedding': ({ x, target }) => losses.hingeEmbedding(x, target),
  'losses.cosine_embedding': ({ x, y, target }) => losses.cosineEmbedding(x, y, target, { margin: 0.25 }),
  'losses.soft_margin': ({ x, target }) => losses.softMargin(x, target),
  'losses.gaussian_nll': ({ x, target, variance }) => losses.gaussianNLL(x, target, variance),
  'losses.gaussian_nll full': ({ x, target, variance }) => losses.gaussianNLL(x, target, variance, { full: true, epsilon: 1e-2, reduction: 'sum' }),
  'losses.poisson_nll': ({ x, target }) => losses.poissonNLL(x, target),
  'losses.poisson_nll full': ({ x, target }) => losses.poissonNLL(x, target, { rates: true, full: true, reduction: 'none' }),
  'losses.kl_div': ({ x, target }) => losses.klDiv(x, target, { reduction: 'batchmean' }),
  'losses.kl_div log': ({ x, target }) => losses.klDiv(x, target, { logTarget: true, reduction: 'sum' }),
};
for (const mode of ['linear', 'nearest', 'cubic']) {
  for (const padding of ['zeros', 'edge', 'reflect']) {
    functions[`image.grid_sample ${mode} ${padding}`] = ({ x, grid }) => image.gridSample(x, grid, { mode, padding });
    if (mode !== 'nearest') functions[`image.grid_sample ${mode} ${padding} align`] = ({ x, grid }) => image.gridSample(x, grid, { mode, padding, alignCorners: true });
  }
}
for (const type of [1, 2, 3, 4]) {
  for (const norm of ['backward', 'ortho', 'forward']) {
    functions[`signal.dct ${type} ${norm}`] = ({ x }) => signal.dct(x, -1, { type, norm });
    functions[`signal.idct ${type} ${norm}`] = ({ x }) => signal.idct(x, -1, { type, norm });
  }
  for (const n of [1, 2]) functions[`signal.dct ${type} of ${n}`] = ({ x }) => signal.dct(x, -1, { type, norm: 'ortho' });
}
for (const name of ['exp', 'log', 'sqrt', 'sin', 'cos', 'sinh', 'cosh']) functions[`cmplx.${name}`] = ofParts(cmplx[name]);
for (const p of [0, 1, 2, 3]) functions[`stats.cdist ${p}`] = ({ x, y }) => stats.cdist(x, y, p);
functions['stats.cdist inf'] = ({ x, y }) => stats.cdist(x, y, Infinity);

const cases = JSON.parse(readFileSync(new URL('../../ir/irtest/cases/functions.json', import.meta.url), 'utf8'));

const array = ({ d, v }) => d === 'i32' ? Int32Array.from(v) : Float32Array.from(v, Number);
const given = (tensor) => tensor.s.length ? array(tensor) : array(tensor)[0];

/** Compares values up to 2e-5 of the largest finite one; NaN equals NaN. */
function near(got, want, what) {
  const list = typeof got === 'number' ? [got] : [...got], numbers = want.v.map(Number);
  assert.equal(list.length, numbers.length, what);
  const largest = numbers.filter(Number.isFinite).reduce((most, x) => Math.max(most, Math.abs(x)), 1);
  list.forEach((x, i) => assert.ok(x === numbers[i] || Number.isNaN(x) && Number.isNaN(numbers[i]) || Math.abs(x - numbers[i]) <= 2e-5 * largest, `${what} is ${x} at ${i}, not ${numbers[i]}`));
}

/** The graph of some cases, with inputs c0/x, …, and what a run gets and must give. */
function together(list) {
  const inputs = {}, wrt = [], want = [];
  const g = graph('functions', (b) => {
    const terms = [];
    list.forEach(({ name, inputs: ports, outputs, weights = [], grads = {}, directions = {}, second = {} }, k) => {
      const port = (key, tensor) => (inputs[`c${k}/${key}`] = given(tensor), b.input(`c${k}/${key}`, tensor.d, tensor.s));
      const results = [functions[name](Object.fromEntries(Object.entries(ports).map(([key, tensor]) => [key, port(key, tensor)])))].flat();
      results.forEach((y, i) => {
        b.output(`c${k}/y${i}`, y);
        want.push([`c${k}/y${i}`, outputs[i], `${name}: result ${i}`]);
        if (weights[i]) terms.push(y.mul(port(`w${i}`, weights[i])).reduceSum());
      });
      for (const [key, tensor] of Object.entries(grads)) {
        wrt.push(`c${k}/${key}`);
        want.push([`grad/c${k}/${key}`, tensor, `${name}: the gradient by ${key}`]);
      }
      for (const [key, tensor] of Object.entries(second)) {
        inputs[`tangent/c${k}/${key}`] = given(directions[key]);
        want.push([`hvp/c${k}/${key}`, tensor, `${name}: the second derivative by ${key}`]);
      }
    });
    if (terms.length) b.output('loss', b.sumAll(terms));
  });
  return { g, inputs, wrt, want };
}

describe('values and derivatives are those of PyTorch, NumPy, SciPy and Pillow', () => {
  test('all cases have functions', () => assert.deepEqual(cases.map(({ name }) => name).filter((name) => !functions[name]), []));
  for (const prefix of ['image.', 'signal.', 'cmplx.', 'stats.', 'losses.']) {
    test(prefix, async (t) => {
      const mine = cases.filter(({ name }) => name.startsWith(prefix));
      const kindOf = ({ grads, second }) => second ? 'second' : grads ? 'gradients' : 'values', kinds = [...new Set(mine.map(kindOf))];
      const entries = {}, parts = Object.fromEntries(kinds.map((kind) => [kind, together(mine.filter((one) => kindOf(one) === kind))]));
      for (const [key, { g, wrt }] of Object.entries(parts)) {
        entries[key] = key === 'values' ? g : key === 'second' ? g.hvp('loss', ...wrt) : g.gradWith({ output: 'loss', by: wrt, missing: 'zero' });
      }
      const s = await program({ entries }, { on: 'cpu' });
      t.after(() => s.close());
      for (const [key, { inputs, want }] of Object.entries(parts)) {
        const { values } = await (await s.run(key, inputs, { read: want.map(([output]) => output) })).reading;
        for (const [output, tensor, what] of want) near(values[output], tensor, what);
      }
    });
  }
});

/** The distributions of the cases by name: the number of parameters, and what makes one of them. */
const distributions = {
  'binomial': [1, (p) => dist.binomial(9, p)],
  'binomial of 100': [1, (p) => dist.binomial(100, p)],
  'multinomial': [1, (logits) => dist.multinomial(9, logits)],
  'mixture': [3, (logits, loc, scale) => dist.mixture(logits, dist.normal(loc, scale))],
};
for (const name of ['normal', 'laplace', 'logistic', 'gumbel', 'uniform', 'studentT', 'truncatedNormal', 'exponential', 'gamma', 'beta', 'dirichlet', 'bernoulli', 'categorical', 'poisson']) {
  distributions[name] = [dist[name].length, dist[name]];
}

const shapes = [[3], ['n', 3], [3], []];
const portsOf = (b, dtype, prefix, n) => Array.from({ length: n }, (_, i) => b.input(`${prefix}${i}`, dtype, shapes[i]));

/** The values of a case, as in ir/dist/typescript_test.go. */
function valueOf(b, name) {
  const words = name.split(' '), dtype = words.at(-1);
  if (words[0] === 'randInt') return dist.randInt(b.input('key', 'u32', [2]), Number(words[1]), Number(words[2]), [4]);
  if (words[0] === 'special') return special[words[1]](...portsOf(b, dtype, 'x', special[words[1]].length));
  const kind = words.slice(1, -2).join(' '), method = words.at(-2), [n, f] = distributions[kind];
  const p = f(...portsOf(b, dtype, 'p', n)), q = f(...portsOf(b, dtype, 'q', n));
  const x = b.input('x', kind === 'categorical' ? 'u8' : dtype, [kind === 'mixture' ? 'n' : 3]), key = b.input('key', 'u32', [2]);
  return method === 'kl' ? dist.kl(p, q) : method === 'sample' ? p.sample(key, [2]) : method === 'logProb' ? p.logProb(x) : p[method]();
}

/** The hash of a graph's text without the names of ports and functions, which differ between the languages; '' for a graph of an unknown formula. */
function hashOf(name) {
  let g;
  try {
    g = graph('case', (b) => b.output('y', valueOf(b, name)));
  } catch (error) {
    assert.equal(error.kind, 'unsupported', error);
    return '';
  }
  const text = g.text().replaceAll(/(graph|input) "[^"]*"/g, '$1');
  g.free();
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

const graphs = JSON.parse(readFileSync(new URL('../../ir/irtest/cases/graphs.json', import.meta.url), 'utf8'));

describe('graphs are those of Go', () => {
  const names = Object.keys(graphs), groupOf = (name) => name.split(' ').slice(0, 2).join(' ');
  for (const group of new Set(names.map(groupOf))) {
    test(group, () => assert.deepEqual(names.filter((name) => groupOf(name) === group && hashOf(name) !== graphs[name]), []));
  }
});

describe('bad calls throw', () => {
  const build = (f, ...types) => graph('bad', (b) => b.output('y', f(...types.map(([dtype, ...shape], i) => b.input(`x${i}`, dtype, shape)))));
  for (const [what, f, types, kind, message] of [
    ['another type', (x, g) => image.gridSample(x, g), [['f32', 2, 5, 4, 3], ['f16', 2, 3, 2]], 'dtype', /^image\.gridSample\(f32\[2,5,4,3\], f16\[2,3,2\]\): an operand is f16: it must be f32 as the first is$/],
    ['an unknown option', (x) => image.resize(x, [3, 3], { sizes: 1 }), [['f32', 2, 5, 4, 3]], 'name', /^image\.resize has no option/],
    ['an unknown mode', (x) => image.pad(x, [1], [1], 'mirror'), [['f32', 2]], 'attr', /mode is mirror/],
    ['a symbolic size', (x) => image.resize(x, [3]), [['f32', 2, 'n', 3]], 'symbol', /axis 1 of x is n: it must be a number/],
    ['a transform of integers', (x) => signal.dct(x), [['i32', 4]], 'dtype', /x is i32/],
    ['a real number', (x) => cmplx.sqrt(x), [['f32', 4]], 'dtype', /an operand is f32: all must be of one complex type/],
    ['eigenvalues of integers', (x) => cmplx.eigvals(x), [['i32', 2, 2]], 'dtype', /^cmplx\.eigvals\(i32\[2,2\]\): the operand is i32/],
    ['eigenvalues of a vector', (x) => cmplx.eig(x).w, [['f32', 2]], 'shape', /must be matrices/],
    ['eigenvalues of no square matrix', (x) => cmplx.eig(x).w, [['f32', 2, 3]], 'shape', /must be square/],
    ['eigenvalues of a symbolic size', (x) => cmplx.eig(x).w, [['f32', 'n', 'n']], 'symbol', /it must be a number/],
    ['nothing', () => cmplx.sqrt(undefined), [['f32', 4]], 'missing', /^cmplx\.sqrt: an operand is/],
    ['too large a correction', (x) => stats.cov(x, 3), [['f32', 2, 3]], 'attr', /correction is 3/],
    ['a function of integers', (x) => special.zeta(x, x), [['i32', 3]], 'dtype', /^special\.zeta\(i32\[3\], i32\[3\]\): an operand is i32/],
    ['numbers alone', () => dist.normal(0, 1), [], 'graph', /^dist\.normal: an operand is Number/],
    ['no number to judge', (x) => dist.normal(x, 1).logProb(), [['f32', 3]], 'missing', /^dist\.normal\.logProb: an operand is/],
    ['another type of scale', (x, y) => dist.normal(x, y), [['f32', 3], ['f16', 3]], 'dtype', /^dist\.normal\(f32\[3\], f16\[3\]\): an operand is f16/],
    ['a negative count', (x) => dist.binomial(-1, x), [['f32', 3]], 'attr', /count is -1/],
    ['no classes', (x) => dist.categorical(x), [['f32']], 'shape', /logits must have an axis of classes/],
    ['no components', (x) => dist.mixture(x), [['f32', 3]], 'missing', /components must be a distribution/],
    ['no formula', (x) => dist.poisson(x).entropy(), [['f32', 3]], 'unsupported', /^dist\.poisson has no formula for entropy$/],
    ['divergence of two kinds', (x) => dist.kl(dist.normal(x, 1), dist.laplace(x, 1)), [['f32', 3]], 'unsupported', /dist\.normal has no formula for the divergence from dist\.laplace$/],
    ['divergence of two counts', (x) => dist.kl(dist.binomial(2, x), dist.binomial(3, x)), [['f32', 3]], 'unsupported', /dist\.binomial has no formula/],
    ['no distribution', (x) => dist.kl(dist.normal(x, 1), undefined), [['f32', 3]], 'missing', /^dist\.kl.*an operand is undefined: it must be a distribution/],
    ['no distributions', () => dist.kl(), [], 'missing', /^dist\.kl: an operand is undefined: it must be a distribution$/],
    ['a shape that is no list', (x, key) => dist.normal(x, 1).sample(key, 3), [['f32', 3], ['u32', 2]], 'shape', /^dist\.normal\.sample: the shape is 3: it must be a list of sizes$/],
    ['a size that is no list', (x) => image.resize(x, 64), [['f32', 2, 4, 4, 3]], 'attr', /^image\.resize.*sizes must be a list/],
    ['no sizes', (x) => image.resize(x), [['f32', 2, 4, 4, 3]], 'attr', /sizes must be a list/],
    ['padding that is no list', (x) => image.pad(x, 1, 1), [['f32', 2, 3]], 'attr', /low and high must be lists/],
    ['no padding', (x) => image.pad(x, [0, 1]), [['f32', 2, 3]], 'attr', /low and high must be lists/],
    ['a key of another type', (x) => dist.gamma(x, 1).sample(x), [['f32', 3]], 'dtype', /key/],
    ['an empty range', (x) => dist.randInt(x, 3, 3), [['u32', 2]], 'attr', /high is 3: it must be above low, 3/],
    ['too large a bound', (x) => dist.randInt(x, 0, 2 ** 32), [['u32', 2]], 'attr', /a bound is 4294967296/],
    ['an unknown reduction', (x) => losses.softMargin(x, x, { reduction: 'batchmean' }), [['f32', 2, 3]], 'attr', /reduction is batchmean/],
  ]) {
    test(what, () => assert.throws(() => build(f, ...types), (error) => error.kind === kind && message.test(error.message) || assert.fail(`${error.kind}: ${error.message}`)));
  }
});
