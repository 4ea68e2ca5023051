// What a program draws: a figure for each title, with a chart or a picture.

import { whenToRedraw } from '../pictures.js';
import { linked } from './links.js';

const margin = { left: 44, right: 18, top: 8, bottom: 22 };
const hues = ['--accent', '--right', '--third', '--fourth', '--fifth', '--sixth', '--seventh'];
/** The dashes of curves, and of the legend, by how often the colours were used before; dots are rings where they are not new. */
const dashes = [[], [7, 5], [2, 4]];
const hueOf = (i) => i % hues.length;
const turnOf = (i) => Math.floor(i / hues.length) % dashes.length;

/** Round numbers between two, about as many as asked for. */
function marks(low, high, count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough)), unit = power * [1, 2, 5, 10].find((n) => n * power >= rough);
  return Array.from({ length: Math.floor(high / unit) - Math.ceil(low / unit) + 1 }, (_, i) => +((Math.ceil(low / unit) + i) * unit).toPrecision(8));
}

/** A mark of a logarithmic axis. */
const powerText = (y) => y < 1e-3 || y >= 1e4 ? y.toExponential(0) : String(+y.toPrecision(1));

/** The range of numbers; of all in lists if none is given. */
function rangeOf(given, lists) {
  if (given) return given;
  let low = Infinity, high = -Infinity;
  for (const list of lists) for (const n of list) if (Number.isFinite(n)) [low, high] = [Math.min(low, n), Math.max(high, n)];
  if (low > high) return [0, 1];
  return low < high ? [low, high] : [low - 1, high + 1];
}

function drawPlot(canvas, { series, log, ranges }) {
  const ratio = devicePixelRatio, wide = canvas.clientWidth, high = canvas.clientHeight, style = getComputedStyle(canvas);
  if (wide < 1) return;
  Object.assign(canvas, { width: wide * ratio, height: high * ratio });
  const context = canvas.getContext('2d'), of = (y) => log ? Math.log10(y) : y;
  context.scale(ratio, ratio);
  const [x0, x1] = rangeOf(ranges.x, series.map(({ x }) => x)), [y0, y1] = rangeOf(ranges.y?.map(of), series.map(({ y }) => log ? y.map(of) : y));
  const px = (x) => margin.left + (x - x0) / (x1 - x0) * (wide - margin.left - margin.right);
  const py = (y) => high - margin.bottom - (of(y) - y0) / (y1 - y0) * (high - margin.top - margin.bottom);
  context.font = `12px ${style.fontFamily}`;
  context.fillStyle = style.getPropertyValue('--quiet');
  context.strokeStyle = style.getPropertyValue('--line');
  context.textAlign = 'center';
  for (const x of marks(x0, x1, Math.min(8, wide / 70))) context.fillText(String(x), px(x), high - 6);
  context.textAlign = 'right';
  for (const mark of marks(y0, y1, 4)) {
    const y = log ? 10 ** mark : mark;
    context.fillText(log ? powerText(y) : String(mark), margin.left - 6, py(y) + 4);
    context.beginPath();
    context.moveTo(margin.left, py(y));
    context.lineTo(wide - margin.right, py(y));
    context.stroke();
  }
  context.beginPath();
  context.rect(margin.left, margin.top, wide - margin.left - margin.right, high - margin.top - margin.bottom);
  context.clip();
  series.forEach(({ x, y, dots }, i) => {
    context.fillStyle = context.strokeStyle = style.getPropertyValue(hues[hueOf(i)]);
    context.lineWidth = 2;
    context.setLineDash(dots ? [] : dashes[turnOf(i)]);
    context.lineJoin = 'round';
    if (dots) {
      context.globalAlpha = x.length > 100 ? 0.6 : 1;
      const radius = x.length > 100 ? 2 : 4;
      for (let n = 0; n < x.length; n++) {
        context.beginPath();
        context.arc(px(x[n]), py(y[n]), radius, 0, 2 * Math.PI);
        if (turnOf(i)) context.stroke(); else context.fill();
      }
      context.globalAlpha = 1;
      return;
    }
    context.beginPath();
    for (let n = 0; n < x.length; n++) context.lineTo(px(x[n]), py(y[n]));
    context.stroke();
  });
}

// Colours from dark over red to bright, at equal distances.
const heat = [[13, 8, 60], [86, 20, 125], [180, 45, 110], [240, 110, 65], [253, 231, 150]];

function drawPicture(canvas, { width, height, values, range, dots }) {
  Object.assign(canvas, { width, height });
  const context = canvas.getContext('2d'), image = context.createImageData(width, height), [low, high] = rangeOf(range, [values]);
  for (let i = 0; i < width * height; i++) {
    const at = Math.min(1, Math.max(0, (values[i] - low) / (high - low) || 0)) * (heat.length - 1), step = Math.min(heat.length - 2, Math.floor(at));
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = heat[step][c] + (at - step) * (heat[step + 1][c] - heat[step][c]);
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  if (!dots) return;
  const larger = document.createElement('canvas'), factor = Math.ceil(480 / width);
  Object.assign(larger, { width, height });
  larger.getContext('2d').putImageData(image, 0, 0);
  Object.assign(canvas, { width: width * factor, height: height * factor });
  context.imageSmoothingEnabled = false;
  context.drawImage(larger, 0, 0, canvas.width, canvas.height);
  for (let n = 0; n < dots.x.length; n++) {
    context.fillStyle = dots.group[n] ? '#ffffff' : '#4cc9f0';
    context.beginPath();
    context.arc(dots.x[n] * canvas.width, dots.y[n] * canvas.height, 4, 0, 2 * Math.PI);
    context.fill();
  }
}

/** The sentence that stands for a figure where nobody sees it. */
function wordsFor({ title, kind, series, width, height }) {
  if (kind === 'picture') return `${title}: a picture of ${width} by ${height}`;
  const last = ({ name, y, dots }) => dots ? `${name}, ${y.length} points` : `${name}, ${y.at(-1)?.toPrecision(3)} at its end`;
  return `${title}: ${series.map(last).join('; ')}`;
}

/** The line that draws a figure, and the tensors in it. @returns {import('./links.js').Link} */
const linkOf = ({ line, names = [] }) => ({ lines: line ? [line] : [], names });

export class Figures {
  #element;
  #links;
  #shown = new Map();

  /** @param {HTMLElement} element that figures are put into @param {import('./links.js').Links} links */
  constructor(element, links) {
    this.#element = element;
    this.#links = links;
    links.add((link) => this.#mark(link));
    const all = () => { for (const figure of this.#shown.values()) this.#draw(figure); };
    whenToRedraw(all);
    new ResizeObserver(all).observe(element);
  }

  clear() {
    this.#shown.clear();
    this.#element.replaceChildren();
  }

  /** Shows a message of `draw.js`. Several that come before the screen is redrawn are drawn once. */
  show(message) {
    let figure = this.#shown.get(message.title);
    if (!figure || figure.message.kind !== message.kind) {
      figure?.element.remove();
      const element = document.createElement('figure'), caption = document.createElement('figcaption'), canvas = document.createElement('canvas'), legend = document.createElement('ul');
      caption.textContent = message.title;
      if (message.log) caption.append(' ', Object.assign(document.createElement('span'), { textContent: 'logarithmic' }));
      canvas.setAttribute('role', 'img');
      canvas.className = message.kind;
      element.append(caption, canvas, legend);
      this.#element.append(element);
      figure = { element, canvas, legend, message, due: false };
      this.#shown.set(message.title, figure);
      const link = linkOf(message);
      element.addEventListener('pointerenter', () => this.#links.over(link));
      element.addEventListener('pointerleave', () => this.#links.over());
      element.addEventListener('click', () => this.#links.pin(link));
    }
    figure.message = message;
    if (figure.due) return;
    figure.due = true;
    requestAnimationFrame(() => {
      figure.due = false;
      this.#draw(figure);
    });
  }

  #mark(link) {
    for (const { element, message } of this.#shown.values()) element.classList.toggle('lit', linked(link, linkOf(message)));
  }

  #draw({ canvas, legend, message }) {
    (message.kind === 'picture' ? drawPicture : drawPlot)(canvas, message);
    canvas.setAttribute('aria-label', wordsFor(message));
    const names = message.kind === 'plot' && message.series.length > 1 ? message.series.map(({ name }) => name) : [];
    if (legend.textContent === names.join('')) return;
    legend.replaceChildren(...names.map((name, i) => {
      const item = document.createElement('li'), key = document.createElement('span');
      key.className = `key hue${hueOf(i)} turn${turnOf(i)}`;
      item.append(key, name);
      return item;
    }));
  }
}
