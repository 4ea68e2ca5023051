// Metrics that a step keeps in states, and those of an evaluation.

import type { Slot } from '../plan/plan.js';
import type { Program } from '../program/program.js';
import type { TensorData } from '../values/dtype.js';

/** The metrics of some steps. */
export interface Measured { metrics: Record<string, number>; confusion: Record<string, number[][]> }

const prefix = 'metric/', expPrefix = 'metric/exp/';

/** The states of metrics, which the functions of the packages nn declare: see `metric`. */
export const metricSlots = (program: Program): Slot[] =>
  program.plan.slots.filter(({ name, role, dtype, shape }) => role === 'state' && dtype === 'f32' && name.startsWith(prefix) && (shape.length === 1 && shape[0] === 2 || shape.length === 2));

/** Reads the metrics, and begins new ones. */
export async function takeMetrics(program: Program, slots: readonly Slot[]): Promise<Measured> {
  const made: Measured = { metrics: {}, confusion: {} };
  if (!slots.length) return made;
  const { values } = await program.readAll(slots.map(({ name }) => name));
  for (const slot of slots) {
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
    Object.assign(metrics, { [`${short} f1`]: macroF1(table), [`${short} accuracy`]: accuracy(table) });
  } else {
    metrics[short] = areaUnderCurve(table[0]!, table[1]!);
  }
}

const sum = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0);

/** The fraction of examples on the diagonal of a confusion matrix. */
const accuracy = (table: readonly number[][]): number => sum(table.map((row, i) => row[i]!)) / sum(table.map(sum));

/** The mean over classes of F1 = 2·hits / (labels + predictions), as scikit-learn's f1_score with average='macro': 0 for a class without either. */
function macroF1(table: readonly number[][]): number {
  return sum(table.map((row, i) => 2 * row[i]! / (sum(row) + sum(table.map((other) => other[i]!)) || 1))) / table.length;
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
