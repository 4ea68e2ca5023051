// Metrics that a step keeps in states, and those of an evaluation.

import type { Slot } from '../plan/plan.js';
import type { Program } from '../program/program.js';
import type { TensorData } from '../values/dtype.js';

/** The metrics of some steps. */
export interface Measured { metrics: Record<string, number>; confusion: Record<string, number[][]> }

const prefix = 'metric/', expPrefix = 'metric/exp/';

/** The states of metrics, which the functions of the packages nn declare: see `metric`. */
const metricSlots = (program: Program): Slot[] =>
  program.plan.slots.filter(({ name, role, dtype, shape }) => role === 'state' && dtype === 'f32' && name.startsWith(prefix) && (shape.length === 1 && shape[0] === 2 || shape.length === 2));

/** Reads the metrics in which something was counted, and begins new ones. */
export async function takeMetrics(program: Program): Promise<Measured> {
  const made: Measured = { metrics: {}, confusion: {} }, slots = metricSlots(program);
  if (!slots.length) return made;
  const { values } = await program.readAll(slots.map(({ name }) => name));
  for (const slot of slots) {
    if (!values[slot.name]!.some((x: number | bigint) => x)) continue;
    put(made, slot, values[slot.name]!);
    await program.write(slot.name, new Float32Array(values[slot.name]!.length));
  }
  return made;
}

/** Adds the metric that a state holds. */
function put({ metrics, confusion }: Measured, { name, shape }: Slot, data: TensorData): void {
  const [rows = 0, columns] = shape;
  if (columns === undefined) {
    const mean = data[0]! / data[1]!;
    if (name.startsWith(expPrefix)) metrics[name.slice(expPrefix.length)] = Math.exp(mean);
    else metrics[name.slice(prefix.length)] = mean;
    return;
  }
  const table = Array.from({ length: rows }, (_, i) => Array.from(data.subarray(i * columns, (i + 1) * columns))), short = name.slice(prefix.length);
  if (rows === columns) {
    confusion[short] = table;
    for (const [of, score] of Object.entries(scoresOf(table))) metrics[`${short} ${of}`] = score;
  } else {
    metrics[short] = areaUnderCurve(table[0]!, table[1]!);
  }
}

const sum = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0);

/**
 * The fraction of examples on the diagonal of a confusion matrix, and the means over the classes of precision, hits / predictions, recall,
 * hits / labels, and F1, 2·hits / (labels + predictions), each 0 for a class without any: those of scikit-learn with average='macro' and
 * all classes as labels.
 */
function scoresOf(table: readonly number[][]): { accuracy: number; precision: number; recall: number; f1: number } {
  const mean = (score: (hits: number, labels: number, predictions: number) => number) =>
    sum(table.map((row, i) => score(row[i]!, sum(row), sum(table.map((other) => other[i]!))))) / table.length;
  return {
    accuracy: sum(table.map((row, i) => row[i]!)) / sum(table.map(sum)),
    precision: mean((hits, _, predictions) => hits / (predictions || 1)), recall: mean((hits, labels) => hits / (labels || 1)),
    f1: mean((hits, labels, predictions) => 2 * hits / (labels + predictions || 1)),
  };
}

/**
 * The area under the curve of true against false positives, from histograms of the scores of both classes, lowest first: the
 * probability that a positive example is in a higher bin than a negative one, with a half for the same.
 */
function areaUnderCurve(negative: readonly number[], positive: readonly number[]): number {
  let below = 0, area = 0;
  positive.forEach((n, i) => {
    area += n * (below + negative[i]! / 2);
    below += negative[i]!;
  });
  return area / (below * sum(positive));
}
