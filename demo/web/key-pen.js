// Drawing by keyboard on a canvas: arrow keys move a pen, Space lowers and lifts it.

import { say } from './page.js';

/** How far a key moves the pen, in widths of the canvas. */
const step = 1 / 32;

const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class KeyPen {
  #canvas;
  #draw;
  #mark = Object.assign(document.createElement('span'), { className: 'pen', hidden: true });
  #at = { x: 0.5, y: 0.5 };
  #down = false;
  /** The arrow keys that are pressed: two of them move along a diagonal. */
  #held = new Set();

  /**
   * @param {HTMLCanvasElement} canvas that can have the focus, in a parent with a position
   * @param {(point: {x: number, y: number}, begins: boolean) => void} draw begins a stroke, or continues it; a point has
   *   parts of the canvas's width and height, from 0 to 1
   */
  constructor(canvas, draw) {
    this.#canvas = canvas;
    this.#draw = draw;
    canvas.parentElement.append(this.#mark);
    canvas.addEventListener('keydown', (event) => this.#pressed(event));
    canvas.addEventListener('keyup', ({ key }) => this.#held.delete(key));
    canvas.addEventListener('blur', () => {
      this.lift();
      this.#held.clear();
      this.#mark.hidden = true;
    });
  }

  /** Ends the stroke, if there is one. */
  lift() {
    this.#down = false;
    this.#show();
  }

  #pressed(event) {
    const { key, ctrlKey, metaKey, altKey, repeat } = event, moving = Object.hasOwn(moves, key);
    if (ctrlKey || metaKey || altKey || !(moving || key === ' ')) return;
    event.preventDefault(); // the page would scroll
    this.#mark.hidden = false;
    if (moving) this.#move(key);
    else if (!repeat) this.#turn();
    this.#show();
  }

  #move(key) {
    this.#held.add(key);
    let { x, y } = this.#at;
    for (const one of this.#held) {
      x += step * moves[one][0];
      y += step * moves[one][1];
    }
    this.#at = { x: Math.min(1, Math.max(0, x)), y: Math.min(1, Math.max(0, y)) };
    if (this.#down) this.#draw(this.#at, false);
  }

  #turn() {
    this.#down = !this.#down;
    if (this.#down) this.#draw(this.#at, true);
    say(this.#down ? 'The pen is down.' : 'The pen is up.');
  }

  #show() {
    const { offsetLeft, offsetTop, clientWidth, clientHeight, clientLeft, clientTop } = this.#canvas;
    this.#mark.classList.toggle('down', this.#down);
    this.#mark.style.left = `${offsetLeft + clientLeft + this.#at.x * clientWidth}px`;
    this.#mark.style.top = `${offsetTop + clientTop + this.#at.y * clientHeight}px`;
  }
}
