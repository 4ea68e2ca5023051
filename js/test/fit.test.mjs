// The loop of a training, on the CPU.

import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { closeCompiler, graph, init, program, train } from '../dist/index.js';
import { allInOrder, files, fit, inOrder, prefetch, reportLine, shuffled, splitRows } from '../dist/fit.js';
import * as nn from '../dist/nn.js';
import { decodeSafetensors, encodeSafetensors } from '../dist/safetensors.js';

before(() => init({ compileWorker: false, worker: false }));
after(closeCompiler);

/** 20 examples of two classes, by the sign of the sum of their coordinates. */
const points = () => {
  const x = Float32Array.from({ length: 40 }, (_, i) => i % 2 ? Math.cos(5 * (i >> 1)) : Math.sin(3 * (i >> 1)));
  const labels = Int32Array.from({ length: 20 }, (_, i) => Number(x[2 * i] + x[2 * i + 1] > 0));
  return { x: { dtype: 'f32', shape: [20, 2], data: x }, labels: { dtype: 'i32', shape: [20], data: labels } };
};

const network = (b, rows) => {
  const x = b.input('x', 'f32', [rows, 2]), labels = b.input('labels', 'i32', [rows]);
  const logits = nn.linear(nn.dropout(nn.linear(x, 16).relu(), 0.1), 2);
  return { logits, labels, loss: logits.crossEntropyMean(labels), accuracy: nn.accuracy(logits, labels) };
};

/** A trainer of a small network with dropout and a metric, whose program has the entry `eval` for all points. */
async function pointsTrainer(t, options = {}) {
  const model = graph('loss', (b) => {
    nn.train(b);
    const { loss, accuracy } = network(b, 4);
    nn.metric(accuracy, 'accuracy');
    b.output('loss', loss);
  });
  const evaluation = graph('eval', (b) => {
    nn.infer(b);
    const { loss, accuracy } = network(b, 20);
    b.output('loss', loss);
    b.output('accuracy', accuracy);
  });
  const trainer = await train(model, { optimizer: { kind: 'adam' }, rate: 0.05, seed: 2, on: 'cpu', worker: false, entries: { eval: evaluation }, ...options });
  t.after(() => trainer.program.close());
  return trainer;
}

const evaluation = () => ({ entry: 'eval', data: inOrder(points(), 20) });

function folderOf(t) {
  const folder = mkdtempSync(join(tmpdir(), 'rlx-fit-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

test('a source that fails where a training goes on is an error of the loop alone', async (t) => {
  const trainer = await pointsTrainer(t), unhandled = [], note = (reason) => unhandled.push(reason.message);
  process.on('unhandledRejection', note);
  t.after(() => process.off('unhandledRejection', note));
  await fit(trainer, { data: shuffled(points(), 4, 1), steps: 2 });
  const data = async function* () {
    await null;
    throw new Error('no network');
  };
  for (const signal of [undefined, new AbortController().signal]) await assert.rejects(fit(trainer, { data, steps: 4, ...signal && { signal } }), { message: /no network/ });
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.deepEqual(unhandled, []);
});

test('it trains with reports, metrics and evaluations', async (t) => {
  const trainer = await pointsTrainer(t, { measureNorm: true }), reports = [], lines = [], json = [];
  const last = await fit(trainer, {
    data: shuffled(points(), 4, 1), epochs: 30, every: 10, eval: evaluation(), progress: (line) => lines.push(line), log: (line) => { json.push(line); },
    callbacks: [(r) => { reports.push(r); }],
  });
  assert.equal(reports.length, 16); // the last one repeats the report before, at the end
  assert.deepEqual([last.step, last.steps, last.epoch, last.done], [150, 150, 30, true]);
  reports.forEach((r, i) => {
    assert.equal(r.step, Math.min(10 * (i + 1), 150));
    const hits = r.metrics.accuracy * 40; // of ten batches of four
    assert.ok(Math.abs(hits - Math.round(hits)) < 1e-4 && hits <= 40 && r.rate > 0 && Math.abs(r.throughput - 4 * r.rate) < 1e-6 * r.throughput, JSON.stringify(r));
    assert.ok(r.metrics['gradient norm'] > 0);
  });
  assert.ok(last.eval.loss < reports[0].eval.loss / 2 && last.eval.accuracy >= 0.95 && last.loss < reports[0].loss, JSON.stringify(last));
  assert.match(lines[0], /^step 10\/150, epoch 1\/30, loss 0\.\d+, accuracy 0?\.?\d+, gradient norm [\d.]+, eval accuracy \S+, eval loss \S+ \(best\), \S+ steps\/s$/);
  assert.equal(JSON.parse(json[4]).step, 50);
});

test('the mean loss of a report is that of the steps since the last one', async (t) => {
  const whole = await pointsTrainer(t), losses = [], data = shuffled(points(), 4, 3), inputs = [...data(0), ...data(1)].length;
  assert.equal(inputs, 10);
  const again = await pointsTrainer(t, { history: 0 }), reports = [];
  await fit(whole, { data, steps: 10, every: 5, callbacks: [(r) => { losses.push(r.loss); }] });
  let sum = 0, n = 0;
  for (const epoch of [0, 1]) for (const batch of data(epoch)) {
    const { reading } = await again.step(batch, { read: ['loss'] });
    sum += (await reading).values.loss[0];
    if (++n % 5 === 0) {
      reports.push(sum / 5);
      sum = 0;
    }
  }
  losses.slice(0, 2).forEach((loss, i) => assert.ok(Math.abs(loss - reports[i]) < 1e-6, `${losses} instead of ${reports}`));
});

const params = async (trainer) => Object.fromEntries(Object.entries(await trainer.save()).filter(([name]) => !name.startsWith('metric/')).map(([name, { data }]) => [name, [...data]]));

test('a number of batches of an epoch that is wrong is an error, as a resumed training would take others', async (t) => {
  const trainer = await pointsTrainer(t);
  await assert.rejects(fit(trainer, { data: (epoch) => shuffled(points(), 4, 7)(epoch), epochs: 2, epochSteps: 6 }), { kind: 'attr', message: 'fit: step 5: epochSteps is 6 and epoch 0 has 5 batches: it must be their number' });
  await fit(trainer, { data: (epoch) => shuffled(points(), 4, 7)(epoch), steps: 12, epochSteps: 5 });
  assert.equal(trainer.steps, 12);
});

test('a training that is cut at random steps ends with the same bits', async (t) => {
  const loop = { data: shuffled(points(), 4, 7), steps: 23, eval: evaluation() };
  const whole = await pointsTrainer(t);
  await fit(whole, loop);
  const want = await params(whole);
  let random = 12345;
  const draw = (n) => (random = Math.imul(random, 1103515245) + 12345 >>> 0) % n;
  for (let turn = 0; turn < 4; turn++) {
    const folder = folderOf(t), save = { folder, every: 1 + turn, last: 2, resume: true };
    const { data } = loop, plain = turn % 2 ? data : (epoch) => data(epoch); // the second cannot seek
    let trainer = await pointsTrainer(t, { seed: 100 + turn });
    for (let cut = 2 + draw(4); cut < 22; cut += 1 + draw(6)) {
      const stop = new AbortController();
      const source = (epoch) => function* () {
        for (const batch of plain(epoch)) {
          if (trainer.steps >= cut) stop.abort();
          yield batch;
        }
      }();
      const seek = plain.from && { epochSteps: plain.epochSteps, from: (epoch, skip) => function* () {
        for (const batch of plain.from(epoch, skip)) {
          if (trainer.steps >= cut) stop.abort();
          yield batch;
        }
      }() };
      if (!readdirSync(folder).length) trainer = await pointsTrainer(t);
      await assert.rejects(fit(trainer, { ...loop, save, data: Object.assign(source, seek), signal: stop.signal }), { kind: 'abort', message: /^fit: step \d+: the signal is aborted$/ });
      trainer = await pointsTrainer(t, { seed: 99 }); // other parameters: those of the checkpoint count
    }
    await fit(trainer, { ...loop, data: plain, save });
    assert.deepEqual(await params(trainer), want);
    const kept = readdirSync(folder).filter((name) => name.startsWith('step-'));
    assert.ok(kept.length === 2 && kept.includes('step-00000023.safetensors'), `${kept}`);
  }
});

test('data that seeks is not read from its begin', async (t) => {
  const folder = folderOf(t), { from, epochSteps } = shuffled(points(), 4, 1), asked = [];
  const data = Object.assign(() => { throw new Error('not asked for'); }, { epochSteps, from: (epoch, skip) => { asked.push([epoch, skip]); return from(epoch, skip); } });
  const save = { folder, resume: true, every: 1 };
  await fit(await pointsTrainer(t), { data: shuffled(points(), 4, 1), steps: 8, save });
  await fit(await pointsTrainer(t), { data, steps: 10, save });
  assert.deepEqual(asked, [[1, 3]]);
});

test('patience counts the evaluations before a checkpoint, and ignores best values after it', async (t) => {
  const whole = folderOf(t), loop = (folder) => ({
    data: shuffled(points(), 4, 1), epochs: 1000, eval: evaluation(), stop: { patience: 3, metric: 'accuracy', larger: true }, save: { folder, last: 1000, resume: true },
  });
  const last = await fit(await pointsTrainer(t), loop(whole)), steps = readdirSync(whole).filter((name) => name.startsWith('step-')).sort();
  assert.ok(steps.length >= 4, `${steps}`);
  for (const name of steps.slice(0, -1)) {
    const folder = folderOf(t);
    for (const one of [name, 'best.txt', 'best.safetensors']) copyFileSync(join(whole, one), join(folder, one));
    const resumed = await fit(await pointsTrainer(t), loop(folder));
    assert.deepEqual([resumed.step, resumed.eval], [last.step, last.eval], name);
  }
  for (let turn = 0; turn < 2; turn++) { // it has ended
    const { step, done, best } = await fit(await pointsTrainer(t), loop(whole));
    assert.deepEqual({ step, done, best }, { step: last.step, done: true, best: false });
  }
  const { step } = await fit(await pointsTrainer(t), { ...loop(whole), stop: { ...loop(whole).stop, patience: 4 } });
  assert.equal(step, last.step + 5);
});

function crc32c(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc >>> 1 ^ (crc & 1 && 0x82f63b78);
  }
  return ~crc;
}

test('a checkpoint with another bit is an error, one without a checksum is not', async (t) => {
  const folder = folderOf(t), name = join(folder, 'step-00000003.safetensors'), loop = { data: shuffled(points(), 4, 1), steps: 3, save: { folder, resume: true } };
  await fit(await pointsTrainer(t), loop);
  const file = readFileSync(name), { tensors, metadata } = decodeSafetensors(file);
  const { 'rlx.crc32c': sum, ...others } = metadata, parts = Object.entries(tensors).map(([key, { data }]) => [key, Buffer.from(data.buffer, data.byteOffset, data.byteLength)]);
  for (const [key, text] of Object.entries(others)) parts.push([`\0${key}`, Buffer.from(text)]);
  let want = 0;
  for (const [key, bytes] of parts) want ^= crc32c(Buffer.concat([Buffer.from(`${key}\0`), bytes]));
  assert.equal(parseInt(sum, 16), want >>> 0);
  for (const at of [file.length - 1, file.length - 30]) {
    const changed = Uint8Array.from(file);
    changed[at] ^= 4;
    writeFileSync(name, changed);
    await assert.rejects(fit(await pointsTrainer(t), loop), { kind: 'syntax', message: /step-00000003.safetensors is damaged: rlx.crc32c of its metadata is [0-9a-f]{8}, and its contents have [0-9a-f]{8}/ });
  }
  delete metadata['rlx.crc32c'];
  writeFileSync(name, encodeSafetensors(tensors, metadata));
  const trainer = await pointsTrainer(t);
  await fit(trainer, loop);
  assert.equal(trainer.steps, 3);
});

test('the first report after a checkpoint has the mean loss of all steps since the one before', async (t) => {
  const whole = folderOf(t), run = async (folder) => {
    const reports = [];
    const save = { folder, every: 4, last: 1000, resume: true };
    await fit(await pointsTrainer(t), { data: shuffled(points(), 4, 1), every: 6, steps: 18, save, callbacks: [({ step, loss }) => { reports.push([step, loss]); }] });
    return reports;
  };
  const want = await run(whole);
  assert.deepEqual(want.map(([step]) => step), [6, 12, 18]);
  for (const [cut, past] of [['04', 0], ['08', 1], ['16', 2]]) {
    const folder = folderOf(t), name = `step-000000${cut}.safetensors`;
    copyFileSync(join(whole, name), join(folder, name));
    assert.deepEqual(await run(folder), want.slice(past), name);
  }
});

test('early stop, the best checkpoint and the log', async (t) => {
  const folder = folderOf(t), trainer = await pointsTrainer(t);
  const last = await fit(trainer, {
    data: shuffled(points(), 4, 1), epochs: 1000, eval: evaluation(), stop: { patience: 3, metric: 'accuracy', larger: true }, save: { folder }, log: 'log.jsonl',
  });
  assert.ok(last.done && last.epoch < 1000);
  const reports = readFileSync(join(folder, 'log.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line)), best = reports.findLast((r) => r.best);
  assert.equal(reports.length - 1 - reports.indexOf(best), 3);
  assert.equal(Number(readFileSync(join(folder, 'best.txt'), 'utf8')), best.eval.accuracy);
  const { values } = await trainer.program.readAll(['linear0/weight']), better = await pointsTrainer(t);
  const { decodeSafetensors } = await import('../dist/safetensors.js');
  await better.load(decodeSafetensors(readFileSync(join(folder, 'best.safetensors'))).tensors);
  assert.equal(better.steps, best.step);
  assert.notDeepEqual((await better.program.readAll(['linear0/weight'])).values, values);
  // A training that goes on knows the best value.
  const more = await fit(await pointsTrainer(t), { data: shuffled(points(), 4, 1), epochs: last.epoch + 1, eval: evaluation(), stop: { metric: 'accuracy', larger: true }, save: { folder, resume: true } });
  assert.deepEqual([more.best, more.epoch], [false, last.epoch + 1]);
  const misspelt = fit(await pointsTrainer(t), { data: shuffled(points(), 4, 1), epochs: 1, eval: evaluation(), stop: { metric: 'acuracy', larger: true } });
  await assert.rejects(misspelt, { kind: 'name', message: /no output of rank 0 or metric acuracy: there are .*accuracy/ });
});

test('a callback ends it', async (t) => {
  const last = await fit(await pointsTrainer(t), { data: shuffled(points(), 4, 1), epochs: 9, callbacks: [(r) => r.step === 10 ? 'stop' : undefined] });
  assert.deepEqual([last.step, last.epoch], [10, 2]);
});

test('the last step has a checkpoint, also where it is none of those between checkpoints', async (t) => {
  const data = shuffled(points(), 4, 1), cases = { 'step-00000010': { epochs: 2, every: 5 }, 'step-00000007': { steps: 7 }, 'step-00000005': { steps: 20, every: 5, callbacks: [(r) => r.step === 5 ? 'stop' : undefined] } };
  for (const [name, loop] of Object.entries(cases)) {
    const folder = folderOf(t);
    await fit(await pointsTrainer(t), { data, ...loop, save: { folder, every: 4 } });
    assert.deepEqual(readdirSync(folder), [`${name}.safetensors`]);
  }
});

test('checkpoints of a later step of another training are refused, and stay', async (t) => {
  const folder = folderOf(t), data = shuffled(points(), 4, 1), first = await pointsTrainer(t);
  await fit(first, { data, steps: 5, save: { folder } });
  await assert.rejects(async () => fit(await pointsTrainer(t), { data, steps: 3, save: { folder } }), { kind: 'attr', message: /step 5, and the trainer did 0 steps: resume must be true/ });
  assert.deepEqual(readdirSync(folder), ['step-00000005.safetensors']);
  await fit(first, { data, steps: 7, save: { folder } }); // a trainer that did the steps goes on
  assert.deepEqual(readdirSync(folder), ['step-00000007.safetensors']);
});

test('an evaluation has outputs of every type, and a batch of weight 0 counts for nothing', async (t) => {
  const types = ['f32', 'f64', 'bf16', 'f16', 'f8e5m2', 'i64', 'u64', 'i8'];
  const model = graph('loss', (b) => b.output('loss', b.param('w', 'f32', []).add(b.input('x', 'f32', [])).square()));
  const measured = graph('eval', (b) => {
    const mask = b.input('mask', 'f32', [4]), mean = b.input('y', 'f32', [4]).mul(mask).sum().div(mask.sum());
    b.output('count', mask.sum().convert('u64'));
    for (const type of types) b.output(type, mean.convert(type));
    b.output('bool', mean.convert('bool'));
  });
  const trainer = await train(model, { optimizer: { kind: 'sgd' }, rate: 0.1, on: 'cpu', worker: false, seed: 1, entries: { eval: measured } });
  t.after(() => trainer.program.close());
  const batches = [[1, 1, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0]].map((mask) => ({ y: Float32Array.of(2, 3, 4, 90), mask: Float32Array.from(mask) }));
  const { eval: means } = await fit(trainer, { data: () => [{ x: 1 }], steps: 1, eval: { entry: 'eval', data: () => batches, weight: 'count' } });
  assert.deepEqual(means, { ...Object.fromEntries(types.map((type) => [type, 3])), bool: 1 });
});

test('a label that is no class, or scores of NaN, are no hit among the best', async (t) => {
  const measured = graph('measured', (b) => b.output('hits', nn.topKAccuracy(b.input('scores', 'f32', [1, 3]), b.input('label', 'i32', [1]), 2)));
  const running = await program({ entries: { main: measured } }, { on: 'cpu', worker: false });
  t.after(() => running.close());
  for (const [scores, label, want] of [[[1, 2, 3], 1, 1], [[1, 2, 3], 0, 0], [[-1, -2, -3], -1, 0], [[-1, -2, -3], 3, 0], [[NaN, NaN, NaN], 1, 0], [[NaN, 2, 1], 1, 1]]) {
    const { values } = await (await running.run('main', { scores: Float32Array.from(scores), label: Int32Array.of(label) }, { read: ['hits'] })).reading;
    assert.equal(values.hits[0], want, `label ${label} of ${scores}`);
  }
});

test('values of metrics', async (t) => {
  const model = graph('measured', (b) => {
    const w = b.param('w', 'f32', [2], new Float32Array(2)), probe = b.constant('f32', [2], Float32Array.of(3, 4));
    const scores = b.input('scores', 'f32', [4]), binary = b.input('binary', 'i32', [4]), loss = b.input('given', 'f32');
    nn.confusion(b.input('predictions', 'i32', [6]), b.input('labels', 'i32', [6]), 3);
    nn.auc(scores, binary);
    nn.perplexity(loss);
    const logits = b.input('logits', 'f32', [4, 3]), classes = b.input('classes', 'i32', [4]);
    nn.metric(nn.topKAccuracy(logits, classes, 2), 'top 2');
    nn.metric(nn.accuracy(logits, classes), 'top 1');
    b.output('loss', w.mul(probe).reduceSum());
  });
  const trainer = await train(model, { optimizer: { kind: 'sgd' }, rate: 0, measureNorm: true, on: 'cpu', worker: false });
  t.after(() => trainer.program.close());
  // The examples of scikit-learn's f1_score (macro 0.2667), precision_score (0.2222), recall_score (0.3333), roc_auc_score (0.75) and top_k_accuracy_score (0.75).
  const batch = (given) => ({
    labels: Int32Array.of(0, 1, 2, 0, 1, 2), predictions: Int32Array.of(0, 2, 1, 0, 0, 1), binary: Int32Array.of(0, 0, 1, 1), scores: Float32Array.of(0.1, 0.4, 0.35, 0.8),
    classes: Int32Array.of(0, 1, 2, 2), logits: Float32Array.of(0.5, 0.2, 0.2, 0.3, 0.4, 0.2, 0.2, 0.4, 0.3, 0.7, 0.2, 0.1), given,
  });
  const { metrics, confusion } = await fit(trainer, { data: () => [batch(1), batch(3)], epochs: 1 });
  assert.deepEqual(confusion, { confusion: [[4, 0, 0], [2, 0, 2], [0, 4, 0]] });
  const want = { 'gradient norm': 5, auc: 0.75, 'confusion accuracy': 2 / 6, 'confusion balanced accuracy': 1 / 3, 'confusion mcc': 0, 'confusion f1': 0.8 / 3, 'confusion precision': 2 / 9, 'confusion recall': 1 / 3, perplexity: Math.exp(2), 'top 2': 0.75, 'top 1': 0.5 };
  assert.deepEqual(Object.keys(metrics).sort(), Object.keys(want).sort());
  for (const [name, value] of Object.entries(want)) assert.ok(Math.abs(metrics[name] - value) < 1e-6, `${name} is ${metrics[name]}, not ${value}`);
  assert.deepEqual([...await trainer.program.read('metric/confusion')], Array(9).fill(0));
});

// scikit-learn 1.9.1 has these for the 24 examples: see fit_scores_test.go.
const scoresOfSklearn = {
  'plain mae': 0.3297678629557292, 'plain rmse': 0.3627994061014861, 'plain r2': 0.9342188364039825,
  'weighted mae': 0.32808176676432294, 'weighted rmse': 0.3651978060915735, 'weighted r2': 0.9334090213916135,
  areas: 0.8059895833333334, 'classes ece': 0.24099720507106448, 'binary ece': 0.20064255414987353,
  'table accuracy': 0.5, 'table balanced accuracy': 0.48340548340548334, 'table mcc': 0.22432432432432434, 'table f1': 0.48951048951048953,
};

/** The examples from one on: targets with a large mean, weights that leave out a third, probabilities, labels and predictions. */
function scored(first, rows) {
  const at = Array.from({ length: rows }, (_, k) => first + k), targets = at.map((i) => 1000 + 2 * Math.sin(1.3 * i));
  const chances = at.map((i) => {
    const e = [0, 1, 2].map((k) => Math.exp(1.5 * (Math.sin(0.9 * i + 2.1 * k) + Number(i % 3 === k)))), sum = e[0] + e[1] + e[2];
    return e.map((x) => x / sum);
  });
  return {
    p: Float32Array.from(at, (i, k) => targets[k] + Math.cos(0.7 * i) / 2), y: Float32Array.from(targets),
    weights: Float32Array.from(at, (i) => Math.min(i % 3, 1) * (1 + i % 2)), chances: Float32Array.from(chances.flat()),
    class: Int32Array.from(at, (i) => i % 3), labelled: Int32Array.from(at, (i) => i % 5 ? i % 3 : 0),
    predicted: Int32Array.from(at, (i, k) => i < 20 ? chances[k].indexOf(Math.max(...chances[k])) : 0),
  };
}

test('scores of regressions and of probabilities are those of scikit-learn', async (t) => {
  const rows = 12, model = graph('scored', (b) => {
    const p = b.input('p', 'f32', [rows]), y = b.input('y', 'f32', [rows]), chances = b.input('chances', 'f32', [rows, 3]), label = b.input('class', 'i32', [rows]);
    nn.regression(p, y, 'plain');
    nn.regression(p, y, 'weighted', b.input('weights', 'f32', [rows]));
    nn.auc(chances, label, 'areas');
    nn.calibration(chances, label, 'classes');
    nn.calibration(chances.slice({ start: [0, 1], size: [rows, 1], stride: [1, 1] }).reshape([rows]), label.eq(1).convert('i32'), 'binary');
    nn.confusion(b.input('predicted', 'i32', [rows]), b.input('labelled', 'i32', [rows]), 3, 'table');
    nn.metric(y.mean(), 'mean', b.input('rows', 'i32'));
    b.output('loss', p.mul(b.param('w', 'f32', [rows])).mean());
  });
  const trainer = await train(model, { optimizer: { kind: 'sgd' }, rate: 1e-9, on: 'cpu', worker: false });
  t.after(() => trainer.program.close());
  const batches = [{ ...scored(0, rows), rows: 3 }, { ...scored(rows, rows), rows: 1 }], mean = (of) => batches[of].y.reduce((a, b) => a + b) / rows;
  const { metrics } = await fit(trainer, { data: () => batches, epochs: 1 });
  for (const [name, value] of Object.entries({ ...scoresOfSklearn, mean: (3 * mean(0) + mean(1)) / 4 })) {
    assert.ok(Math.abs(metrics[name] - value) < (name === 'mean' ? 1e-3 : 1e-5), `${name} is ${metrics[name]}, not ${value}`);
  }
});

test('an evaluation counts all rows, those of a last batch that is not full included', async (t) => {
  const data = points(), ys = () => Array.from(allInOrder({ y: data.labels }, 8)(), ({ y }) => [y.shape, ...y.data]);
  assert.deepEqual(ys().map(([shape]) => shape[0]), [8, 8, 4]);
  assert.deepEqual(ys().flatMap(([, ...rows]) => rows), [...data.labels.data]);
  const model = graph('loss', (b) => {
    nn.train(b);
    b.output('loss', network(b, 4).loss);
  });
  const evaluate = (rows, mask) => graph(`eval${rows}`, (b) => {
    nn.infer(b);
    const { logits, labels } = network(b, rows), m = mask ? b.input('mask', 'f32', [rows]) : b.full('f32', [rows], 1);
    b.output('hits', logits.argmax({ axis: -1 }).eq(labels).convert('f32').mul(m).sum().div(m.sum()));
    b.output('loss', logits.crossEntropy(labels).mul(m).sum().div(m.sum()));
    b.output('rows', m.sum());
  });
  const trainer = await train(model, { optimizer: { kind: 'sgd' }, rate: 0.1, on: 'cpu', worker: false, seed: 1, entries: { padded: evaluate(8, true), whole: evaluate(20, false) } });
  t.after(() => trainer.program.close());
  const { eval: padded } = await fit(trainer, { data: inOrder(data, 4), steps: 3, eval: { entry: 'padded', data: allInOrder(data, 8, 'mask'), weight: 'rows' } });
  const read = await trainer.program.run('whole', { x: data.x.data, labels: data.labels.data }, { read: ['hits', 'loss'] });
  const whole = (await read.reading).values;
  for (const name of ['hits', 'loss']) assert.ok(Math.abs(padded[name] - whole[name][0]) < 1e-6, `${name} is ${padded[name]}, not ${whole[name][0]}`);
  assert.throws(() => allInOrder(data, 8, 3), { kind: 'attr' });
});

test('rows to test with are those of SplitRows in Go (split_test.go)', () => {
  const rows = Array.from({ length: 10 }, (_, i) => i);
  const data = { row: { dtype: 'f32', shape: [10, 2], data: Float32Array.from(rows.flatMap((i) => [i, i])) }, labels: { dtype: 'u8', shape: [10], data: Uint8Array.of(5, 5, 2, 5, 2, 2, 2, 0, 0, 5) } };
  for (const [fraction, options, want] of [[0.4, { seed: 7, stratify: 'labels' }, [0, 5, 8, 9]], [0.3, { seed: 4e9 }, [2, 3, 9]], [0.01, undefined, [7]]]) {
    const { training, testing } = splitRows(data, fraction, options), rest = rows.filter((i) => !want.includes(i));
    for (const [part, of] of [[testing, want], [training, rest]]) {
      assert.deepEqual(part.row, { dtype: 'f32', shape: [of.length, 2], data: Float32Array.from(of.flatMap((i) => [i, i])) });
      assert.deepEqual([...part.labels.data], of.map((i) => data.labels.data[i]));
    }
  }
  for (const [kind, ...args] of [['attr', data, 0], ['attr', data, 1], ['attr', data, 0.5, { stratify: 'row' }], ['name', data, 0.5, { stratify: 'label' }], ['limit', data, 0.5, { seed: -1 }],
    ['name', data, 0.5, { Seed: 1 }], ['shape', { x: { dtype: 'f32', shape: [1], data: new Float32Array(1) } }, 0.5], ['shape', {}, 0.5]]) {
    assert.throws(() => splitRows(...args), { kind });
  }
});

test('a weight makes the mean of batches one of their rows, and a batch of none counts for nothing', async (t) => {
  const model = graph('weighted', { inputs: { x: ['f32'], rows: ['i32'] }, params: { w: ['f32', [2]] } }, (_, { x, rows, w }) => {
    nn.metric(x, 'mean', rows);
    return { loss: w.sum() };
  });
  const trainer = await train(model, { optimizer: { kind: 'sgd' }, rate: 0.1, on: 'cpu', worker: false });
  t.after(() => trainer.program.close());
  const { metrics } = await fit(trainer, { data: () => [{ x: 1, rows: 4 }, { x: 7, rows: 2 }, { x: NaN, rows: 0 }], epochs: 1 });
  assert.deepEqual({ ...metrics }, { mean: 3 });
});

test('metrics refuse wrong values', () => {
  const cases = {
    'regression of another shape': ['shape', (f) => nn.regression(f, f.expandDims(0))],
    'regression of integers': ['dtype', (f, i) => nn.regression(f, i)],
    'regression without a name': ['name', (f) => nn.regression(f, f, '')],
    'weights of another shape': ['shape', (f) => nn.regression(f, f, 'm', f.expandDims(0))],
    'weights that are no value': ['graph', (f) => nn.regression(f, f, 'm', 2)],
    'a weight of a mean of rank 1': ['shape', (f) => nn.metric(f.mean(), 'm', f)],
    'areas of other rows': ['shape', (f, i) => nn.auc(f.builder.stack([f, f]), i)],
    'labels that are floats': ['dtype', (f) => nn.calibration(f, f)],
    'scores of one class': ['shape', (f, i) => nn.auc(f.expandDims(-1), i)],
    'labels of a column': ['shape', (f, i) => nn.accuracy(f.builder.stack([f, f], 1), i.expandDims(-1))],
    'more than all classes': ['attr', (f, i) => nn.topKAccuracy(f.builder.stack([f, f], 1), i, 3)],
  };
  for (const [name, [kind, build]] of Object.entries(cases)) {
    assert.throws(() => graph('wrong', (b) => build(b.input('f', 'f32', [3]), b.input('i', 'i32', [3]))), { kind }, name);
  }
});

test('metrics of an evaluation are over its batches alone, and choose when to stop', async (t) => {
  const network = (b) => {
    const x = b.input('x', 'f32', [4]);
    nn.confusion(x.gt(0.5).convert('i32'), b.input('label', 'i32', [4]), 2, 'table');
    nn.metric(x.mean(), 'mean');
    return x.mul(b.param('w', 'f32', [4])).mean();
  };
  const model = graph('loss', (b) => b.output('loss', network(b))), tested = graph('eval', (b) => {
    b.output('loss', network(b));
    nn.auc(b.input('score', 'f32', [4]), b.input('positive', 'i32', [4]), 'area');
  });
  const trainer = await train(model, { optimizer: { kind: 'sgd' }, rate: 1e-9, on: 'cpu', worker: false, entries: { eval: tested } });
  t.after(() => trainer.program.close());
  const all = (x, label) => ({ x: Float32Array.of(x, x, x, x), label: Int32Array.of(label, label, label, 1) });
  const scored = { score: Float32Array.of(0.1, 0.4, 0.35, 0.8), positive: Int32Array.of(0, 0, 1, 1) }, reports = [];
  const last = await fit(trainer, {
    data: () => [all(0.2, 0)], steps: 20, every: 1, eval: { entry: 'eval', data: () => [{ ...all(0.9, 1), ...scored }, { ...all(0.1, 1), ...scored }] },
    stop: { patience: 2, metric: 'table f1', larger: true }, callbacks: [(r) => { reports.push(r); }],
  });
  assert.deepEqual([last.step, reports.length, reports[0].best], [3, 3, true]);
  for (const { metrics, confusion, eval: measured, evalConfusion } of reports) {
    assert.deepEqual([confusion.table, Object.keys(metrics).length], [[[3, 0], [1, 0]], 7]);
    assert.ok(Math.abs(metrics.mean - 0.2) < 1e-6);
    assert.deepEqual([evalConfusion.table, measured.area], [[[0, 0], [4, 4]], 0.75]);
    assert.ok(Math.abs(measured.mean - 0.5) < 1e-6);
  }
});

test('batches that are made ahead are no more than asked for, in order', async (t) => {
  const made = [], taken = [];
  const source = async function* () {
    for (let i = 0; i < 6; i++) {
      made.push(i);
      yield i;
    }
  };
  for await (const i of prefetch(source, 2)(0)) {
    taken.push(i);
    await new Promise((resolve) => setTimeout(resolve));
    assert.ok(made.length <= taken.length + 3, `${made.length} after ${taken.length}`);
  }
  assert.deepEqual(taken, [0, 1, 2, 3, 4, 5]);
  const slow = Object.assign((epoch) => async function* () {
    for (const batch of shuffled(points(), 4, 5)(epoch)) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      yield { x: batch.x.data, labels: batch.labels };
    }
  }(), { epochSteps: 5 });
  const plain = await pointsTrainer(t);
  await fit(plain, { data: shuffled(points(), 4, 5), epochs: 3 });
  for (const data of [prefetch(slow, 3), prefetch(shuffled(points(), 4, 5), 3)]) { // the arrays of both are those of the next batch, too
    const early = await pointsTrainer(t);
    await fit(early, { data, epochs: 3 });
    assert.deepEqual(await params(early), await params(plain));
  }
});

test('a signal ends the wait for a batch, among those that are skipped too, and an evaluation', async (t) => {
  const trainer = await pointsTrainer(t), forever = () => (async function* () { await new Promise(() => {}); })();
  const ended = (loop, step) => {
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 30);
    return assert.rejects(fit(trainer, { ...loop, signal: stop.signal }), { kind: 'abort', message: `fit: step ${step}: the signal is aborted` });
  };
  await ended({ data: forever, steps: 9 }, 0);
  await fit(trainer, { data: shuffled(points(), 4, 5), epochs: 1 });
  await ended({ data: forever, steps: 9 }, trainer.steps);
  const stop = new AbortController();
  let measured = 0;
  const rows = function* () {
    for (let i = 0; i < 5; i++) {
      if (++measured === 2) stop.abort();
      yield* inOrder(points(), 20)();
    }
  };
  const steps = trainer.steps + 1;
  await assert.rejects(fit(trainer, { data: shuffled(points(), 4, 5), steps, signal: stop.signal, eval: { entry: 'eval', data: rows } }), { kind: 'abort' });
  assert.equal(measured, 2);
});

test('shuffled and inOrder give the rows of each epoch', () => {
  const column = { x: { dtype: 'i32', shape: [7], data: Int32Array.of(0, 1, 2, 3, 4, 5, 6) } };
  const rows = (data, epoch) => [...data(epoch)].flatMap(({ x }) => [...x.data]).slice();
  const collect = (iterable) => Array.from(iterable, ({ x }) => [...x.data]);
  const data = shuffled(column, 3, 1);
  assert.deepEqual(collect(inOrder(column, 3)()), [[0, 1, 2], [3, 4, 5]]);
  assert.deepEqual(collect(data(4)), collect(data(4)));
  assert.notDeepEqual(collect(data(4)), collect(data(5)));
  assert.notDeepEqual(collect(data(4)), collect(shuffled(column, 3, 2)(4)));
  assert.deepEqual(collect(data.from(4, 1)), collect(data(4)).slice(1));
  assert.equal(new Set(collect(data(4)).flat()).size, 6);
  const all = new Set();
  for (let epoch = 0; epoch < 20; epoch++) for (const x of collect(data(epoch)).flat()) all.add(x);
  assert.equal(all.size, 7);
  assert.ok(rows(data, 0).length === 6);
});

test('a checkpoint that goes away as it is about to be read has a newer one', async (t) => {
  const bytes = new Map(), write = async (name, of) => { bytes.set(name, of); }, remove = async (name) => { bytes.delete(name); };
  const folder = { list: async () => [...bytes.keys()], read: async (name) => bytes.get(name), write, append: async () => {}, remove };
  const loop = (epochs, from = folder) => ({ data: shuffled(points(), 4, 1), epochs, save: { folder: from, resume: true } });
  const { step } = await fit(await pointsTrainer(t), loop(1)), [old] = bytes.keys();
  const ended = await fit(await pointsTrainer(t), loop(2)), newer = [...bytes];
  // What another tab does between the list and the read.
  const other = { ...folder, list: async () => bytes.has(old) ? [old] : folder.list(), read: async (name) => { if (name === old) { bytes.clear(); for (const [key, value] of newer) bytes.set(key, value); } return folder.read(name); } };
  bytes.clear();
  bytes.set(old, new Uint8Array(1));
  const trainer = await pointsTrainer(t), seen = [];
  const last = await fit(trainer, { ...loop(3, other), callbacks: [({ step: at }) => { seen.push(at); }] });
  assert.equal(last.step, 3 * step);
  assert.deepEqual(seen, [ended.step + step], 'the first two epochs are not trained again');
});

test('a folder has files, which are complete or not there', async (t) => {
  const folder = await files(join(folderOf(t), 'a/b')), bytes = (text) => new TextEncoder().encode(text), text = async (name) => new TextDecoder().decode(await folder.read(name));
  assert.equal(await folder.read('x'), undefined);
  await folder.write('x', bytes('one'));
  await folder.write('x', bytes('two'));
  await folder.append('log', bytes('a'));
  await folder.append('log', bytes('b'));
  assert.deepEqual([(await folder.list()).sort(), await text('x'), await text('log')], [['log', 'x'], 'two', 'ab']);
  await folder.remove('x');
  await folder.remove('x');
  assert.deepEqual(await folder.list(), ['log']);
  await assert.rejects(files('/dev/null/x'), { kind: 'store', message: /^folder \/dev\/null\/x: / });
});

describe('what a loop is given is checked', () => {
  const data = shuffled(points(), 4, 1), full = { list: async () => [], read: async () => undefined, write: async () => { throw new Error('no space left on device'); } };
  const rows = [
    ['no loop', undefined, 'missing', /^fit: data is Undefined: it must be a function of the epoch$/],
    ['no data', { epochs: 1 }, 'missing', /^fit: data is Undefined: it must be/],
    ['no end', { data }, 'missing', /^fit: epochs and steps are not given: one of them is required$/],
    ['no epochs', { data, epochs: 0 }, 'limit', /^fit: epochs is 0, not a whole number from 1/],
    ['steps that are no number', { data, steps: '3' }, 'limit', /^fit: steps is 3, not/],
    ['a misspelt option', { data, epochs: 1, evry: 2 }, 'name', /^fit has no option evry: there are data, epochs/],
    ['an unknown entry', { data, epochs: 1, eval: { entry: 'evall', data } }, 'name', /^fit: the plan has no entry evall: there are step, eval$/],
    ['no data to evaluate', { data, epochs: 1, eval: { entry: 'eval' } }, 'missing', /data of eval is Undefined: it must be a function/],
    ['one callback in place of a list', { data, epochs: 1, callbacks: () => {} }, 'attr', /callbacks is Function/],
    ['patience without evaluation', { data, epochs: 1, stop: { patience: 2 } }, 'missing', /patience is 2 and eval is not given/],
    ['an unknown metric', { data, epochs: 1, eval: evaluation(), stop: { patience: 2, metric: 'acc' } }, 'name', /metric of stop: the evaluation has no output of rank 0 or metric acc: there are loss, accuracy/],
    ['an unknown weight', { data, epochs: 1, eval: { ...evaluation(), weight: 'rows' } }, 'name', /weight of eval: entry eval has no output of rank 0 rows/],
    ['a log without a folder', { data, epochs: 1, log: 'x' }, 'attr', /log is the file x, and save has no folder/],
    ['no folder', { data, epochs: 1, save: {} }, 'missing', /folder of save is Undefined: it must be a path/],
    ['an empty epoch', { data: () => [], epochs: 1 }, 'missing', /^fit: step 0: epoch 0 has no batch$/],
    ['an epoch that is none', { data: () => 5, epochs: 1 }, 'missing', /^fit: step 0: fit: what data returns is Number: it must be an iterable of batches$/],
    ['a wrong batch', { data: () => [{ x: new Int32Array(8) }], epochs: 1 }, 'dtype', /^fit: step 0: step: x is Int32Array: it must be Float32Array, of f32/],
    ['a full disk', { data, epochs: 1, save: { folder: full } }, 'store', /^fit: step 5: .*no space left/],
    ['an aborted signal', { data, epochs: 1, signal: AbortSignal.abort() }, 'abort', /^fit: step 0: the signal is aborted$/],
  ];
  for (const [name, loop, kind, message] of rows) {
    test(name, async (t) => {
      const trainer = await pointsTrainer(t);
      await assert.rejects(fit(trainer, loop), { name: 'RlxError', kind, message });
    });
  }
  test('no trainer', () => assert.rejects(fit(undefined, { data, epochs: 1 }), { kind: 'missing', message: /the first argument is Undefined: it must be a trainer/ }));
  test('a loss that is no number', async (t) => {
    const trainer = await pointsTrainer(t), bad = { ...[...data(0)][0], x: { data: new Float32Array(8).fill(NaN), shape: [4, 2] } };
    await assert.rejects(fit(trainer, { data: () => [bad], steps: 3, stopOnNaN: true }), { kind: 'nan', message: /^fit: step \d: loss is NaN at step 1$/ });
  });
});

test('a gradient that is infinite reaches no checkpoint', async (t) => {
  // The loss Σ x·w of step 8, with x of 3e38, is finite where w is 0.1, and its gradient is not. The frozen mask is −∞.
  const model = graph('steep', (b) => {
    const loss = b.input('x', 'f32', [2]).mul(b.param('w', 'f32', [])).reduceSum();
    b.output('loss', loss.max(b.param('mask', 'f32', [])));
  });
  const count = graph('count', (b) => {
    const n = b.state('n', 'f32', []), next = n.add(1);
    b.setState('n', next);
    b.output('score', next);
  });
  const options = { optimizer: { kind: 'sgd' }, frozen: ['mask'], rate: 1e-3, on: 'cpu', worker: false, entries: { count }, params: { w: 0.1, mask: Float32Array.of(-Infinity) } };
  const data = () => Array.from({ length: 12 }, (_, i) => ({ x: new Float32Array(2).fill(i === 7 ? 3e38 : 1) }));
  for (const stopOnNaN of [false, true]) {
    const trainer = await train(model, options), kept = new Map(), errors = [];
    t.after(() => trainer.program.close());
    const folder = { list: async () => [...kept.keys()], read: async (name) => kept.get(name), remove: async (name) => { kept.delete(name); }, write: async (name, bytes) => { kept.set(name, bytes); } };
    const done = fit(trainer, {
      data, steps: 12, every: 2, stopOnNaN, save: { folder, last: 2, onError: ({ kind, message }) => errors.push(`${kind}: ${message}`) },
      eval: { entry: 'count', data: () => [{}] }, stop: { metric: 'score', larger: true }, // better each time, whatever w is
    });
    if (stopOnNaN) await assert.rejects(done, { kind: 'nan', message: 'fit: step 8: parameter w is not finite' });
    else assert.equal((await done).best, false);
    assert.deepEqual(errors, stopOnNaN ? [] : Array(3).fill('nan: parameter w is not finite'));
    assert.deepEqual([...kept.keys()].sort(), ['best.safetensors', 'best.txt', 'step-00000004.safetensors', 'step-00000006.safetensors']);
    assert.equal(new TextDecoder().decode(kept.get('best.txt')), '3\n');
  }
});

test('training goes on while storage is full, without a checkpoint', async (t) => {
  const trainer = await pointsTrainer(t), kept = new Map(), errors = [];
  let full = false;
  const folder = {
    list: async () => [...kept.keys()], read: async (name) => kept.get(name), remove: async (name) => { kept.delete(name); },
    write: async (name, bytes) => {
      if (full) throw new DOMException('The quota has been exceeded.', 'QuotaExceededError');
      kept.set(name, bytes);
    },
    append: async () => { if (full) throw new DOMException('The quota has been exceeded.', 'QuotaExceededError'); },
  };
  const last = await fit(trainer, {
    data: shuffled(points(), 4, 1), steps: 30, every: 5, save: { folder, onError: ({ kind, message }) => errors.push([kind, message]) }, log: 'log.jsonl',
    callbacks: [({ step }) => {
      full = step >= 5 && step < 25;
      if (step === 20) assert.deepEqual([...kept.keys()], ['step-00000005.safetensors']);
    }],
  });
  assert.equal(last.step, 30);
  assert.deepEqual(errors, Array(8).fill(['store', 'folder of checkpoints: The quota has been exceeded.'])); // of the checkpoint and the log of four reports
  assert.deepEqual([...kept.keys()], ['step-00000030.safetensors']);
});

test('a report is a line', () => {
  const report = { step: 200, steps: 1000, epoch: 2, epochs: 0, loss: 0.123456, rate: 350.4, metrics: { b: 1, a: 0.98 }, eval: { loss: 0.15 }, best: true };
  assert.equal(reportLine(report), 'step 200/1000, epoch 2, loss 0.1235, a 0.98, b 1, eval loss 0.15 (best), 350 steps/s');
  assert.equal(reportLine({ ...report, loss: NaN, rate: 0, best: false }), 'step 200/1000, epoch 2, no steps left, a 0.98, b 1, eval loss 0.15');
  assert.match(reportLine({ ...report, loss: NaN }), /loss NaN, .* 350 steps\/s/); // diverged
});
