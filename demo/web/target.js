// The picture that the home page's network learns.

import { KeyPen } from './key-pen.js';
import { scenes } from './scenes.js';

/** The points of a step: that of demo/models/field.go. */
const points = 1024;

/** The picture to learn: a scene, and what the visitor paints over it. */
export class Target {
  #canvas;
  #context;
  #scene = 0;
  #pixels;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {() => void} [onPaint] is called when the visitor has painted
   */
  constructor(canvas, onPaint) {
    this.#canvas = canvas;
    this.#context = canvas.getContext('2d', { willReadFrequently: true });
    this.#draw();
    let from;
    const place = ({ offsetX, offsetY }) => [offsetX / this.#canvas.clientWidth * this.#canvas.width, offsetY / this.#canvas.clientHeight * this.#canvas.height];
    const paint = (to, begins) => {
      this.#paint(begins ? to : from, to);
      from = to;
      onPaint?.();
    };
    this.#canvas.addEventListener('pointerdown', (event) => {
      this.#canvas.setPointerCapture(event.pointerId);
      paint(place(event), true);
    });
    this.#canvas.addEventListener('pointermove', (event) => { if (from && event.buttons) paint(place(event), false); });
    this.#canvas.addEventListener('pointerup', () => { from = undefined; });
    new KeyPen(canvas, ({ x, y }, begins) => paint([x * canvas.width, y * canvas.height], begins));
  }

  next() {
    this.#scene = (this.#scene + 1) % scenes.length;
    this.#draw();
  }

  #draw() {
    scenes[this.#scene](this.#context, this.#canvas.width);
    this.#read();
  }

  #paint(from, to) {
    Object.assign(this.#context, { strokeStyle: '#ffffff', lineWidth: 14, lineCap: 'round' });
    this.#context.beginPath();
    this.#context.moveTo(...from);
    this.#context.lineTo(...to);
    this.#context.stroke();
    this.#read();
  }

  #read() { this.#pixels = this.#context.getImageData(0, 0, this.#canvas.width, this.#canvas.height).data; }

  /** Points drawn at random, and their colours. The arrays are used again by the next call. */
  batch = (() => {
    const places = new Float32Array(2 * points), colors = new Float32Array(3 * points);
    return () => {
      const wide = this.#canvas.width;
      for (let i = 0; i < points; i++) {
        const x = Math.floor(Math.random() * wide), y = Math.floor(Math.random() * wide);
        places[2 * i] = (x + 0.5) / wide;
        places[2 * i + 1] = (y + 0.5) / wide;
        for (let c = 0; c < 3; c++) colors[3 * i + c] = this.#pixels[4 * (y * wide + x) + c] / 255;
      }
      return { points: places, colors };
    };
  })();
}
