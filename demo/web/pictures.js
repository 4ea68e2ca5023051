// Small pictures on canvases: digits as the network gets them, and weights.

const parse = (color) => {
  const probe = new OffscreenCanvas(1, 1).getContext('2d');
  probe.fillStyle = color;
  probe.fillRect(0, 0, 1, 1);
  return probe.getImageData(0, 0, 1, 1).data;
};

/** The colours of the style sheet that pictures are made of. */
function palette(canvas) {
  const style = getComputedStyle(canvas);
  return Object.fromEntries(['paper', 'ink', 'plus', 'minus'].map((name) => [name, parse(style.getPropertyValue(`--${name}`))]));
}

/** Writes the colour between two, t from 0 to 1, at a place of the image. */
function mix(image, at, from, to, t) {
  for (let c = 0; c < 3; c++) image.data[at + c] = from[c] + (to[c] - from[c]) * t;
  image.data[at + 3] = 255;
}

/**
 * Draws a digit, one pixel of the canvas for each count; the style sheet makes it larger.
 * @param {HTMLCanvasElement} canvas
 * @param {ArrayLike<number>} counts 64 numbers from 0 to 16
 */
export function drawDigit(canvas, counts) {
  canvas.width = canvas.height = 8;
  const context = canvas.getContext('2d'), image = context.createImageData(8, 8), { paper, ink } = palette(canvas);
  for (let i = 0; i < 64; i++) mix(image, 4 * i, paper, ink, counts[i] / 16);
  context.putImageData(image, 0, 0);
}

/** Draws counts large, with the numbers in the cells. */
export function drawCounts(canvas, counts) {
  const context = canvas.getContext('2d'), style = getComputedStyle(canvas), cell = canvas.width / 8;
  const colour = (name) => style.getPropertyValue(name);
  context.globalAlpha = 1;
  context.fillStyle = colour('--paper');
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.font = `${cell * 0.36}px ${style.fontFamily}`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  for (let i = 0; i < 64; i++) {
    const x = i % 8 * cell, y = Math.floor(i / 8) * cell, count = counts[i];
    context.globalAlpha = count / 16;
    context.fillStyle = colour('--ink');
    context.fillRect(x + 1, y + 1, cell - 2, cell - 2);
    context.globalAlpha = count > 0 ? 1 : 0.45;
    context.fillStyle = count > 7 ? colour('--paper') : colour(count > 0 ? '--ink' : '--quiet');
    context.fillText(count, x + cell / 2, y + cell / 2 + 1);
  }
  context.globalAlpha = 1;
}

/**
 * Draws weights as pictures side by side: one tone for positive ones, another for negative ones.
 * @param {HTMLCanvasElement} canvas
 * @param {Float32Array} weights side·side rows of `count` weights
 * @param {{side: number, count: number, columns: number}} layout
 */
export function drawFilters(canvas, weights, { side, count, columns }) {
  const pitch = side + 1, rows = Math.ceil(count / columns);
  canvas.width = columns * pitch - 1;
  canvas.height = rows * pitch - 1;
  const context = canvas.getContext('2d'), image = context.createImageData(canvas.width, canvas.height), { paper, plus, minus } = palette(canvas);
  for (let f = 0; f < count; f++) {
    let most = 1e-6;
    for (let p = 0; p < side * side; p++) most = Math.max(most, Math.abs(weights[p * count + f]));
    const x0 = f % columns * pitch, y0 = Math.floor(f / columns) * pitch;
    for (let p = 0; p < side * side; p++) {
      const w = weights[p * count + f] / most, at = 4 * ((y0 + Math.floor(p / side)) * canvas.width + x0 + p % side);
      mix(image, at, paper, w > 0 ? plus : minus, Math.abs(w));
    }
  }
  context.putImageData(image, 0, 0);
}
