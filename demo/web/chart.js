// Curves on canvases over one axis of steps, redrawn no more often than the screen is.

import { count } from './page.js';
import { whenToRedraw } from './pictures.js';

const margin = { left: 42, right: 12, top: 8, bottom: 22 };

/** Neighbouring points of a curve are merged when it has more than this: drawing it takes no longer, however long it is. */
const mostPoints = 1024;

/** A vertical axis: the height of a value from 0 (bottom) to 1 (top), and the values that are marked. */
export const scales = {
  loss: {
    place: (v) => (Math.log10(Math.max(v, 1e-3)) + 2.3) / 3,
    marks: [[0.01, '0.01'], [0.1, '0.1'], [1, '1']],
  },
  accuracy: {
    place: (v) => v / 100,
    marks: [[0, '0 %'], [50, '50 %'], [100, '100 %']],
  },
  // ln 65 = 4.17 is the initial loss of a model of 65 characters; below 1 it has memorised much of its text.
  nats: {
    place: (v) => (v - 0.8) / 3.6,
    marks: [[1, '1'], [2, '2'], [3, '3'], [4, '4']],
  },
};

/** Steps to mark: about four round numbers from 0 to most. */
function stepMarks(most) {
  const rough = most / 4, power = 10 ** Math.floor(Math.log10(rough)), unit = Math.max(1, [1, 2, 5, 10].find((n) => n * power >= rough) * power);
  return Array.from({ length: Math.floor(most / unit) + 1 }, (_, i) => i * unit);
}

/** The values of a curve by step, no more of them than can be distinguished: each is of `width` steps. */
export class Points {
  /** @type {{step: number, sum: number, n: number, low: number, high: number}[]} */ list = [];
  width = 1;
  /** The last step and its value. */
  last = undefined;

  /** Adds a point; steps come in order. */
  add(step, value) {
    this.last = { step, value };
    this.#merge({ step, sum: value, n: 1, low: value, high: value });
    if (this.list.length <= mostPoints) return;
    this.width *= 2;
    const apart = this.list;
    this.list = [];
    for (const point of apart) this.#merge(point);
  }

  #merge(point) {
    const before = this.list.at(-1);
    if (!before || Math.floor(before.step / this.width) !== Math.floor(point.step / this.width)) return void this.list.push(point);
    before.step = point.step;
    before.sum += point.sum;
    before.n += point.n;
    before.low = Math.min(before.low, point.low);
    before.high = Math.max(before.high, point.high);
  }

  copy() { return Points.of(this); }

  /** The points of others, or of what a browser kept of them. */
  static of({ list, width, last }) { return Object.assign(new Points(), { list: list.map((point) => ({ ...point })), width, last }); }
}

/** The steps that charts side by side have in common: all of them end with the longest curve. */
export class Steps {
  /** @type {Chart[]} */ charts = [];
  #due = false;

  get end() { return Math.max(50, ...this.charts.flatMap(({ curves }) => curves.map(({ points }) => points.last?.step ?? 0))); }

  /** Draws all charts when the screen is drawn next. */
  redraw() {
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      for (const chart of this.charts) chart.draw(this.end);
    });
  }
}

/** A curve of a chart. */
export class Curve {
  #points = new Points();
  #steps;

  /** @param {Steps} steps @param {string} color a custom property of the style sheet */
  constructor(steps, color) {
    this.#steps = steps;
    this.color = color;
  }

  get points() { return this.#points; }
  set points(points) {
    this.#points = points;
    this.#steps.redraw();
  }

  /** Adds a point; steps come in order. */
  add(step, value) {
    this.#points.add(step, value);
    this.#steps.redraw();
  }
}

export class Chart {
  /** @type {Curve[]} */ curves;
  #canvas;
  #scale;
  #describe;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {Steps} steps
   * @param {{scale: object, colors: string[], describe: (...last: ({step: number, value: number} | undefined)[]) => string}} options
   *   colors are those of the curves; describe gives the last point of each in words
   */
  constructor(canvas, steps, { scale, colors, describe }) {
    this.curves = colors.map((color) => new Curve(steps, color));
    this.#canvas = canvas;
    this.#scale = scale;
    this.#describe = describe;
    steps.charts.push(this);
    new ResizeObserver(() => steps.redraw()).observe(canvas);
    whenToRedraw(() => steps.redraw());
  }

  /** Draws the curves now, up to the step `end`. */
  draw(end) {
    const { clientWidth: width, clientHeight: height } = this.#canvas, ratio = devicePixelRatio;
    this.#canvas.setAttribute('aria-label', this.#describe(...this.curves.map(({ points }) => points.last)));
    if (width === 0) return; // it is hidden
    if (this.#canvas.width !== Math.round(width * ratio)) this.#canvas.width = Math.round(width * ratio);
    if (this.#canvas.height !== Math.round(height * ratio)) this.#canvas.height = Math.round(height * ratio);
    const context = this.#canvas.getContext('2d'), style = getComputedStyle(this.#canvas);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const x = (step) => margin.left + step / end * (width - margin.left - margin.right);
    const y = (value) => height - margin.bottom - Math.min(1, Math.max(0, this.#scale.place(value))) * (height - margin.top - margin.bottom);
    this.#axes(context, style, { x, y, width, height, end });
    for (const { points, color } of this.curves) line(context, points.list, style.getPropertyValue(color), { x, y });
  }

  #axes(context, style, { x, y, width, height, end }) {
    context.font = `12px ${style.fontFamily}`;
    context.fillStyle = style.getPropertyValue('--quiet');
    context.strokeStyle = style.getPropertyValue('--line');
    context.lineWidth = 1;
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (const [value, text] of this.#scale.marks) {
      const at = Math.round(y(value)) + 0.5;
      context.beginPath();
      context.moveTo(margin.left, at);
      context.lineTo(width - margin.right, at);
      context.stroke();
      context.fillText(text, margin.left - 6, at);
    }
    context.textBaseline = 'top';
    for (const step of stepMarks(end)) {
      const text = count(step);
      context.textAlign = step === 0 ? 'left' : x(step) > width - 40 ? 'right' : 'center';
      context.fillText(step === 0 ? 'step 0' : text, step === 0 ? margin.left : Math.min(x(step), width - margin.right), height - margin.bottom + 6);
    }
  }
}

/** The mean of the points in each column of pixels, and behind it how far they reach. */
function line(context, list, color, { x, y }) {
  const columns = [];
  for (const { step, sum, n, low, high } of list) {
    const at = Math.round(x(step)), last = columns.at(-1);
    if (last?.at !== at) columns.push({ at, sum, n, low, high });
    else Object.assign(last, { sum: last.sum + sum, n: last.n + n, low: Math.min(last.low, low), high: Math.max(last.high, high) });
  }
  if (columns.length === 0) return;
  context.fillStyle = context.strokeStyle = color;
  context.globalAlpha = 0.2;
  for (const { at, low, high } of columns) context.fillRect(at, y(high), 1.5, Math.max(0, y(low) - y(high)));
  context.globalAlpha = 1;
  context.lineWidth = 2;
  context.lineJoin = 'round';
  context.beginPath();
  for (const { at, sum, n } of columns) context.lineTo(at, y(sum / n));
  context.stroke();
  const end = columns.at(-1);
  context.beginPath();
  context.arc(end.at, y(end.sum / end.n), 3.5, 0, 2 * Math.PI);
  context.fill();
}
