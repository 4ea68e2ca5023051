// Drawing with mouse, pen, finger or keyboard.

import { KeyPen } from './key-pen.js';
import { penned, whenToRedraw } from './pictures.js';

export class Pad {
  #canvas;
  #onChange;
  #keyPen;
  /** @type {{x: number, y: number}[][]} */ #strokes = [];
  /** A digit that is shown until something is drawn. */
  #sample;

  /** @param {HTMLCanvasElement} canvas  @param {(strokes: {x: number, y: number}[][]) => void} onChange */
  constructor(canvas, onChange) {
    this.#canvas = canvas;
    this.#onChange = onChange;
    canvas.addEventListener('pointerdown', (event) => this.#begin(event));
    canvas.addEventListener('pointermove', (event) => this.#move(event));
    this.#keyPen = new KeyPen(canvas, (point, begins) => begins ? this.#stroke(point) : this.#extend([point]));
    whenToRedraw(() => this.#draw());
    this.#draw();
  }

  clear() {
    this.#keyPen.lift();
    this.#strokes = [];
    this.#sample = undefined;
    this.#draw();
    this.#onChange(this.#strokes);
  }

  /** Shows a digit in place of what was drawn. */
  show(counts) {
    this.#keyPen.lift();
    this.#strokes = [];
    this.#sample = counts;
    this.#draw();
  }

  #point({ clientX, clientY }) {
    const { left, top, width, height } = this.#canvas.getBoundingClientRect();
    return { x: (clientX - left) / width, y: (clientY - top) / height };
  }

  #begin(event) {
    if (event.button !== 0) return;
    this.#canvas.setPointerCapture(event.pointerId);
    this.#stroke(this.#point(event));
  }

  #stroke(point) {
    this.#sample = undefined;
    this.#strokes.push([point]);
    this.#changed();
  }

  #move(event) {
    if (!this.#canvas.hasPointerCapture(event.pointerId)) return;
    const events = event.getCoalescedEvents?.() ?? [];
    this.#extend((events.length > 0 ? events : [event]).map((one) => this.#point(one)));
  }

  #extend(points) {
    this.#strokes.at(-1).push(...points);
    this.#changed();
  }

  #changed() {
    this.#draw();
    this.#onChange(this.#strokes);
  }

  #draw() {
    const { width, height } = this.#canvas, context = this.#canvas.getContext('2d'), style = getComputedStyle(this.#canvas);
    context.fillStyle = style.getPropertyValue('--paper');
    context.fillRect(0, 0, width, height);
    if (this.#sample) context.drawImage(penned(this.#sample, style.getPropertyValue('--ink')), width * 0.03, height * 0.03, width * 0.94, height * 0.94);
    context.strokeStyle = style.getPropertyValue('--ink');
    context.lineWidth = width * 0.085;
    context.lineCap = context.lineJoin = 'round';
    for (const [first, ...rest] of this.#strokes) {
      context.beginPath();
      context.moveTo(first.x * width, first.y * height);
      for (const { x, y } of rest.length > 0 ? rest : [first]) context.lineTo(x * width, y * height);
      context.stroke();
    }
    if (this.#strokes.length > 0 || this.#sample) return;
    context.fillStyle = style.getPropertyValue('--quiet');
    context.font = `${width * 0.06}px ${style.fontFamily}`;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    context.fillText('draw here', width / 2, height / 2);
  }
}
