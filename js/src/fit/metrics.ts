// Metrics that a step keeps in states, and those of an evaluation.

import type { Slot } from '../plan/plan.js';
import type { Program } from '../program/program.js';
import type { TensorData } from '../values/dtype.js';

/** The metrics of some steps. */
export interface Measured { metrics: Record<string, number>; confusion: Record<string, number[][]> }

const prefix = 'metric/', expPrefix = 'metric/exp/', regressionPrefix = 'metric/regression/', calibrationPrefix = 'metric/calibration/';

/** Whether a state is one of the functions of nn that measure: see `metric`. */
function isMetric({ name, role, dtype, shape }: Slot): boolean {
  if (role !== 'state' || dtype !== 'f32' || !name.startsWith(prefix)) return false;
  const [first, second] = shape;
  if (name.startsWith(regressionPrefix)) return shape.length === 1 && first === 5;
  if (name.startsWith(calibrationPrefix)) return shape.length === 2 && first === 3;
  if (shape.length === 2) return first === second || first === 2 || first === 1 && second === 2;
  return shape.length === 1 ? first === 2 : shape.length === 3 && second === 2;
}

/** Reads the metrics in which something was counted, and begins new ones. */
export async function takeMetrics(program: Program): Promise<Measured> {
  const made: Measured = { metrics: {}, confusion: {} }, slots = program.plan.slots.filter(isMetric);
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
  const list = Array.from(data, Number), short = name.slice(prefix.length), width = shape.at(-1)!;
  const of = (start: string): string | undefined => name.startsWith(start) ? name.slice(start.length) : undefined;
  const exp = of(expPrefix), errors = of(regressionPrefix), calibrated = of(calibrationPrefix), mean = list[0]! / list[1]!;
  if (errors !== undefined) addScores(metrics, errors, errorsOf(list));
  else if (calibrated !== undefined) metrics[`${calibrated} ece`] = calibrationError(list, width);
  else if (shape.length === 1 || shape[0] === 1) metrics[exp ?? short] = exp === undefined ? mean : Math.exp(mean);
  else if (shape.length === 3 || shape[0] !== width) metrics[short] = meanArea(list, width);
  else {
    const table = confusion[short] = rowsOf(list, width);
    addScores(metrics, short, scoresOf(table));
  }
}

function addScores(metrics: Measured['metrics'], name: string, scores: Readonly<Record<string, number>>): void {
  for (const [of, score] of Object.entries(scores)) metrics[`${name} ${of}`] = score;
}

const rowsOf = (list: readonly number[], width: number): number[][] => Array.from({ length: list.length / width }, (_, i) => list.slice(i * width, (i + 1) * width));

const sum = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0);

/**
 * The fraction of examples on the diagonal of a confusion matrix, and the means over the classes of precision, hits / predictions, recall,
 * hits / labels, and F1, 2·hits / (labels + predictions), each 0 for a class without any: those of scikit-learn with average='macro' and
 * all classes as labels. The balanced accuracy is the mean recall over the classes that labels have, and mcc Matthews' correlation
 * coefficient, 0 if all labels or all predictions are of one class.
 */
function scoresOf(table: readonly number[][]): Record<string, number> {
  const classes = table.map((row, i) => ({ hits: row[i]!, labels: sum(row), predictions: sum(table.map((other) => other[i]!)) }));
  const total = (score: (of: typeof classes[number]) => number) => sum(classes.map(score)), mean = (score: (of: typeof classes[number]) => number) => total(score) / classes.length;
  const all = total(({ labels }) => labels), hits = total(({ hits }) => hits), recalled = total(({ hits, labels }) => hits / (labels || 1));
  const both = total(({ labels, predictions }) => labels * predictions);
  const spreads = (all ** 2 - total(({ labels }) => labels ** 2)) * (all ** 2 - total(({ predictions }) => predictions ** 2));
  return {
    accuracy: hits / all, 'balanced accuracy': recalled / classes.filter(({ labels }) => labels).length,
    precision: mean(({ hits, predictions }) => hits / (predictions || 1)), recall: recalled / classes.length,
    f1: mean(({ hits, labels, predictions }) => 2 * hits / (labels + predictions || 1)), mcc: (hits * all - both) / (Math.sqrt(spreads) || 1),
  };
}

/**
 * The errors of the state of `regression`. For targets that are all equal r2 is 1 without an error and 0 with one, as in
 * scikit-learn.
 */
function errorsOf([n, , spread, absolute, squared]: readonly number[]): Record<string, number> {
  return { mae: absolute! / n!, rmse: Math.sqrt(squared! / n!), r2: spread! > 0 ? 1 - squared! / spread! : Number(squared === 0) };
}

/** The expected calibration error of the sums of bins: numbers of examples, probabilities, and right predictions. */
function calibrationError(list: readonly number[], bins: number): number {
  const [examples, chances, right] = rowsOf(list, bins);
  return sum(chances!.map((p, i) => Math.abs(p - right![i]!))) / sum(examples!);
}

/** The mean area of pairs of histograms, of negative examples and of positive ones. Pairs without examples of both are left out. */
function meanArea(list: readonly number[], bins: number): number {
  const areas = rowsOf(list, 2 * bins).map((pair) => areaUnderCurve(pair.slice(0, bins), pair.slice(bins))).filter((area) => !Number.isNaN(area));
  return sum(areas) / areas.length;
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
