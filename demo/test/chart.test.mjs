// What is drawn of a curve, however long it is.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Points, Steps } from '../web/chart.js';
import { count } from '../web/page.js';

test('a long curve stays short, and loses neither a step nor an extreme', () => {
  const points = new Points(), n = 100_000, value = (step) => step === 31_416 ? 99 : Math.sin(step);
  for (let step = 1; step <= n; step++) points.add(step, value(step));
  assert.ok(points.list.length <= 1024 && points.list.length > 400, `${points.list.length} points`);
  assert.equal(points.list.reduce((sum, point) => sum + point.n, 0), n);
  assert.equal(Math.max(...points.list.map(({ high }) => high)), 99);
  assert.deepEqual(points.last, { step: n, value: value(n) });
  assert.equal(points.list.at(-1).step, n);
});

test('a short curve is what was added, and a copy is another one', () => {
  const points = new Points();
  for (const [step, value] of [[0, 3], [7, 2], [9, 1]]) points.add(step, value);
  const copy = points.copy();
  copy.add(10, 0);
  assert.deepEqual(points.list.map(({ step, sum }) => [step, sum]), [[0, 3], [7, 2], [9, 1]]);
  assert.equal(copy.list.length, 4);
});

test('charts of one axis reach as far as the longest curve', () => {
  const steps = new Steps(), [losses, accuracies] = [new Points(), new Points()];
  steps.charts.push({ curves: [{ points: losses }] }, { curves: [{ points: accuracies }] });
  assert.equal(steps.end, 50);
  losses.add(700, 1);
  accuracies.add(650, 90);
  assert.equal(steps.end, 700);
});

test('whole numbers have commas between their thousands', () => {
  assert.deepEqual([0, 7, 999, 1000, 12345, 999999, 1234567, 1e9, -1234].map(count), ['0', '7', '999', '1,000', '12,345', '999,999', '1,234,567', '1,000,000,000', '-1,234']);
});
