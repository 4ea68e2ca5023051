// Special functions and distributions: their graphs are those of Go, whose values Go's tests hold to mpmath and SciPy.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { closeCompiler, graph, init, program } from '../dist/index.js';
import * as dist from '../dist/dist.js';
import * as special from '../dist/special.js';

before(() => init({ compileWorker: false, worker: false }));
after(closeCompiler);

/** The distributions of the cases by name: the number of parameters, and what makes one of them. */
const made = {
  'binomial': [1, (p) => dist.binomial(9, p)],
  'binomial of 100': [1, (p) => dist.binomial(100, p)],
  'multinomial': [1, (logits) => dist.multinomial(9, logits)],
  'mixture': [3, (logits, loc, scale) => dist.mixture(logits, dist.normal(loc, scale))],
};
for (const name of ['normal', 'laplace', 'logistic', 'gumbel', 'uniform', 'studentT', 'truncatedNormal', 'exponential', 'gamma', 'beta', 'dirichlet', 'bernoulli', 'categorical', 'poisson']) {
  made[name] = [dist[name].length, dist[name]];
}

const shapes = [[3], ['n', 3], [3], []];
const inputs = (b, dtype, prefix, n) => Array.from({ length: n }, (_, i) => b.input(`${prefix}${i}`, dtype, shapes[i]));

/** The values of a case, as in ir/dist/typescript_test.go. */
function build(b, name) {
  const words = name.split(' '), dtype = words.at(-1);
  if (words[0] === 'randInt') return dist.randInt(b.input('key', 'u32', [2]), Number(words[1]), Number(words[2]), [4]);
  if (words[0] === 'special') return special[words[1]](...inputs(b, dtype, 'x', special[words[1]].length));
  const kind = words.slice(1, -2).join(' '), method = words.at(-2), [n, f] = made[kind];
  const p = f(...inputs(b, dtype, 'p', n)), q = f(...inputs(b, dtype, 'q', n));
  const x = b.input('x', kind === 'categorical' ? 'u8' : dtype, [kind === 'mixture' ? 'n' : 3]), key = b.input('key', 'u32', [2]);
  return method === 'kl' ? dist.kl(p, q) : method === 'sample' ? p.sample(key, [2]) : method === 'logProb' ? p.logProb(x) : p[method]();
}

/** The hash of a graph's text without the names of ports and functions, which differ between the languages; '' for a graph that is refused. */
function hashOf(name) {
  let g;
  try {
    g = graph('case', (b) => b.output('y', build(b, name)));
  } catch (error) {
    assert.equal(error.kind, 'unsupported', error);
    return '';
  }
  const text = g.text().replaceAll(/(graph|input) "[^"]*"/g, '$1');
  g.free();
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

const cases = JSON.parse(readFileSync(new URL('../../ir/irtest/cases/graphs.json', import.meta.url), 'utf8'));

describe('graphs are those of Go', () => {
  const names = Object.keys(cases), groupOf = (name) => name.split(' ').slice(0, 2).join(' ');
  for (const group of new Set(names.map(groupOf))) {
    test(group, () => assert.deepEqual(names.filter((name) => groupOf(name) === group && hashOf(name) !== cases[name]), []));
  }
});
