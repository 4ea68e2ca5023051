// Small pictures on canvases: digits as the network gets them, and weights.

/** Calls a function, at most once a frame, when it must draw again: in other colours, or on canvases that a lost GPU took. */
export function whenToRedraw(draw) {
  let due = false;
  const later = () => {
    if (!due) requestAnimationFrame(() => { due = false; draw(); });
    due = true;
  };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', later);
  document.addEventListener('contextrestored', later, true);
}

const parsed = new Map();

/** The red, green and blue of a colour. */
function parse(color) {
  if (!parsed.has(color)) {
    const probe = new OffscreenCanvas(1, 1).getContext('2d');
    probe.fillStyle = color;
    probe.fillRect(0, 0, 1, 1);
    parsed.set(color, probe.getImageData(0, 0, 1, 1).data);
  }
  return parsed.get(color);
}

/** The colours of the style sheet that pictures use. */
export function palette(canvas) {
  const style = getComputedStyle(canvas);
  return Object.fromEntries(['paper', 'ink', 'plus', 'minus'].map((name) => [name, parse(style.getPropertyValue(`--${name}`))]));
}

/** Writes the colour between two, t from 0 to 1, at a place of the image. */
export function mix(image, at, from, to, t) {
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
 * Draws as many digits as fit in rows and columns.
 * @param {HTMLCanvasElement} canvas
 * @param {(i: number) => ArrayLike<number>} digit the counts of digit i
 * @param {number} most how many there are
 * @returns {number} how many were drawn
 */
export function drawWall(canvas, digit, most) {
  const pitch = 9, zoom = 1.5, columns = Math.floor(canvas.clientWidth / pitch / zoom), rows = Math.min(Math.floor(canvas.clientHeight / pitch / zoom), Math.floor(most / Math.max(columns, 1)));
  if (columns < 1 || rows < 1) return 0;
  canvas.width = columns * pitch;
  canvas.height = rows * pitch;
  const context = canvas.getContext('2d'), image = context.createImageData(canvas.width, canvas.height), { paper, ink } = palette(canvas);
  for (let n = 0; n < columns * rows; n++) {
    const counts = digit(n), x0 = n % columns * pitch, y0 = Math.floor(n / columns) * pitch;
    for (let p = 0; p < 64; p++) mix(image, 4 * ((y0 + (p >> 3)) * canvas.width + x0 + (p & 7)), paper, ink, counts[p] / 16);
  }
  context.putImageData(image, 0, 0);
  return columns * rows;
}

/** The weights of the four neighbours of a place between two points, by Catmull and Rom: a smooth curve through all points. */
const curve = (t) => [t * (t * (2 - t) - 1) / 2, (t * t * (3 * t - 5) + 2) / 2, t * (t * (4 - 3 * t) + 1) / 2, t * t * (t - 1) / 2];

/**
 * Makes a square picture smoothly larger.
 * @param {ArrayLike<number>} values side·side numbers; outside of them there is 0
 * @returns {Float32Array} (side·factor)² numbers
 */
export function enlarge(values, side, factor) {
  const size = side * factor, rows = new Float32Array(side * size), all = new Float32Array(size * size);
  const taps = Array.from({ length: size }, (_, i) => {
    const at = (i + 0.5) / factor - 0.5, first = Math.floor(at) - 1;
    return curve(at - Math.floor(at)).map((weight, k) => ({ weight, from: first + k })).filter(({ from }) => from >= 0 && from < side);
  });
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < size; x++) for (const { weight, from } of taps[x]) rows[y * size + x] += weight * values[y * side + from];
  }
  for (let y = 0; y < size; y++) {
    for (const { weight, from } of taps[y]) for (let x = 0; x < size; x++) all[y * size + x] += weight * rows[from * size + x];
  }
  return all;
}

/** A picture of a digit as if it were written with a pen, on an otherwise clear canvas a little larger than the digit. */
export function penned(counts, color) {
  const side = 10, factor = 16, size = side * factor, bordered = new Float32Array(side * side);
  for (let y = 0; y < 8; y++) for (let x = 0; x < 8; x++) bordered[(y + 1) * side + x + 1] = counts[8 * y + x];
  const canvas = new OffscreenCanvas(size, size), context = canvas.getContext('2d'), image = context.createImageData(size, size), ink = parse(color);
  enlarge(bordered, side, factor).forEach((count, i) => {
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = ink[c];
    image.data[4 * i + 3] = 255 * Math.min(1, Math.max(0, (count - 6) / 2 + 0.5));
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

/**
 * Draws pictures of weights side by side, each enlarged: one tone for positive ones, another for
 * negative ones, of the same strength in all pictures.
 * @param {HTMLCanvasElement} canvas
 * @param {Float32Array[]} pictures side·side weights each
 * @param {{side: number, columns: number, factor: number}} layout factor 1 shows the weights as they are
 */
export function drawWeights(canvas, pictures, { side, columns, factor }) {
  const size = side * factor, pitch = size + Math.max(1, Math.round(size / 10)), rows = Math.ceil(pictures.length / columns);
  canvas.width = columns * pitch - (pitch - size);
  canvas.height = rows * pitch - (pitch - size);
  const context = canvas.getContext('2d'), image = context.createImageData(canvas.width, canvas.height), { paper, plus, minus } = palette(canvas);
  const most = pictures.reduce((top, picture) => picture.reduce((m, w) => Math.max(m, Math.abs(w)), top), 0.05);
  pictures.forEach((picture, f) => {
    const x0 = f % columns * pitch, y0 = Math.floor(f / columns) * pitch;
    (factor > 1 ? enlarge(picture, side, factor) : picture).forEach((w, p) => {
      mix(image, 4 * ((y0 + Math.floor(p / size)) * canvas.width + x0 + p % size), paper, w > 0 ? plus : minus, Math.min(1, Math.abs(w) / most));
    });
  });
  context.putImageData(image, 0, 0);
}
