// Curves on a canvas, redrawn no more often than the screen is.

const margin = { left: 42, right: 12, top: 10, bottom: 34 };

/** A vertical axis: where a value lies from 0 (bottom) to 1 (top), and the values that are marked. */
export const scales = {
  loss: {
    place: (v) => (Math.log10(Math.max(v, 1e-3)) + 2.3) / 3,
    marks: [[0.01, '0.01'], [0.1, '0.1'], [1, '1']],
    title: 'loss',
  },
  accuracy: {
    place: (v) => v / 100,
    marks: [[0, '0 %'], [50, '50 %'], [100, '100 %']],
    title: 'right',
  },
};

/** Steps to mark: about four round numbers from 0 to most. */
function stepMarks(most) {
  const rough = most / 4, power = 10 ** Math.floor(Math.log10(rough)), unit = [1, 2, 5, 10].find((n) => n * power >= rough) * power;
  return Array.from({ length: Math.floor(most / unit) + 1 }, (_, i) => i * unit);
}

export class Chart {
  #canvas;
  #scale;
  #color;
  #describe;
  /** @type {number[]} */ #steps = [];
  /** @type {number[]} */ #values = [];
  #due = false;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {{scale: object, color: string, describe: (step: number, value: number) => string}} options
   *   color is a custom property of the style sheet; describe tells the last point in words
   */
  constructor(canvas, { scale, color, describe }) {
    this.#canvas = canvas;
    this.#scale = scale;
    this.#color = color;
    this.#describe = describe;
    new ResizeObserver(() => this.redraw()).observe(canvas);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.redraw());
  }

  clear() {
    this.#steps = [];
    this.#values = [];
    this.#canvas.setAttribute('aria-label', this.#describe());
    this.redraw();
  }

  /** Adds a point; steps come in order. */
  add(step, value) {
    this.#steps.push(step);
    this.#values.push(value);
    this.redraw();
  }

  redraw() {
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      this.#draw();
    });
  }

  #draw() {
    const { clientWidth: width, clientHeight: height } = this.#canvas, ratio = devicePixelRatio;
    if (this.#canvas.width !== Math.round(width * ratio)) this.#canvas.width = Math.round(width * ratio);
    if (this.#canvas.height !== Math.round(height * ratio)) this.#canvas.height = Math.round(height * ratio);
    const context = this.#canvas.getContext('2d'), style = getComputedStyle(this.#canvas);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const most = Math.max(50, this.#steps.at(-1) ?? 0);
    const x = (step) => margin.left + step / most * (width - margin.left - margin.right);
    const y = (value) => height - margin.bottom - Math.min(1, Math.max(0, this.#scale.place(value))) * (height - margin.top - margin.bottom);
    this.#axes(context, style, { x, y, width, height, most });
    this.#line(context, style.getPropertyValue(this.#color), { x, y });
    if (this.#steps.length > 0) this.#canvas.setAttribute('aria-label', this.#describe(this.#steps.at(-1), this.#values.at(-1)));
  }

  #axes(context, style, { x, y, width, height, most }) {
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
    context.textAlign = 'center';
    context.textBaseline = 'top';
    for (const step of stepMarks(most)) context.fillText(step.toLocaleString('en'), x(step), height - margin.bottom + 5);
    context.textAlign = 'right';
    context.fillText('step', width - margin.right, height - 13);
  }

  /** The mean of the points in each column of pixels, and behind it how far they reach. */
  #line(context, color, { x, y }) {
    const columns = [];
    this.#steps.forEach((step, i) => {
      const at = Math.round(x(step)), value = this.#values[i], last = columns.at(-1);
      if (last?.at !== at) columns.push({ at, sum: value, n: 1, low: value, high: value });
      else Object.assign(last, { sum: last.sum + value, n: last.n + 1, low: Math.min(last.low, value), high: Math.max(last.high, value) });
    });
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
}
