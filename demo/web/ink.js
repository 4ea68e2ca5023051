// From strokes to inputs of the network: the way the digits of the data were made. They were
// bitmaps of 32×32, cut at the ink and centred, and each of the 8×8 counts is the number of pixels
// of a 4×4 block have ink.

/** The side of the bitmap, and of a block of it that becomes one count. */
export const bitmapSide = 32, blockSide = 4;

/** The side of the picture that a network gets. */
export const side = bitmapSide / blockSide;

/** The pixels with ink in a bitmap of the data: for every digit it is close to this mean. */
const usualInk = 313;

/** The pen, in pixels of the bitmap, is never finer or broader than this. */
const finest = 3.5, broadest = 9;

/** @typedef {{x: number, y: number}} Point */

/**
 * The 32×32 bitmap of a drawing: as large as fits with its pen, centred, not distorted. The pen
 * is as broad as gives the drawing about as much ink as the data's digits have.
 * @param {Point[][]} strokes lines of points, in any unit, y downwards
 * @returns {Uint8Array} 1 for ink, row by row
 */
export function bitmap(strokes) {
  const bits = new Uint8Array(bitmapSide ** 2), drawn = strokes.filter((stroke) => stroke.length > 0);
  if (drawn.length === 0) return bits;
  const box = boxOf(drawn), pen = penFor(drawn, box), segments = fit(drawn, box, bitmapSide - pen);
  for (let y = 0; y < bitmapSide; y++) {
    for (let x = 0; x < bitmapSide; x++) {
      if (segments.some((segment) => distance(x + 0.5, y + 0.5, segment) <= pen / 2)) bits[y * bitmapSide + x] = 1;
    }
  }
  return bits;
}

/**
 * The counts of a drawing, 64 of them from 0 to 16; all zeros where nothing was drawn.
 * @param {Point[][]} strokes
 * @returns {Uint8Array}
 */
export function counts(strokes) {
  const sums = new Uint8Array(side ** 2);
  bitmap(strokes).forEach((bit, i) => {
    const row = Math.floor(i / bitmapSide / blockSide), column = Math.floor(i % bitmapSide / blockSide);
    sums[row * side + column] += bit;
  });
  return sums;
}

/** The middle of a drawing, and its greater extent. */
function boxOf(strokes) {
  const xs = strokes.flat().map(({ x }) => x), ys = strokes.flat().map(({ y }) => y);
  const left = Math.min(...xs), right = Math.max(...xs), top = Math.min(...ys), bottom = Math.max(...ys);
  return { x: (left + right) / 2, y: (top + bottom) / 2, extent: Math.max(right - left, bottom - top) };
}

/**
 * How broad a pen is. Lines of length l, scaled so that their extent e and the pen w fill the
 * bitmap's side s, take l·(s-w)/e·w pixels; w is where these are the usual ones.
 */
function penFor(strokes, { extent }) {
  const length = strokes.reduce((sum, stroke) => sum + lengthOf(stroke, extent / 16), 0);
  const half = bitmapSide / 2, square = half ** 2 - usualInk * extent / length;
  return Math.min(broadest, Math.max(finest, square > 0 ? half - Math.sqrt(square) : broadest));
}

/** The length of a stroke, without the tremor of points closer than `least`. */
function lengthOf(stroke, least) {
  let length = 0, [last] = stroke;
  for (const point of stroke) {
    const step = Math.hypot(point.x - last.x, point.y - last.y);
    if (step < least) continue;
    length += step;
    last = point;
  }
  return length;
}

/** The segments of a drawing in pixels of the bitmap, cut at the ink and centred. */
function fit(strokes, box, room) {
  const scale = box.extent > 0 ? room / box.extent : 0, middle = bitmapSide / 2;
  return strokes.flatMap((stroke) => {
    const placed = stroke.map(({ x, y }) => [middle + (x - box.x) * scale, middle + (y - box.y) * scale]);
    return placed.length === 1 ? [[...placed[0], ...placed[0]]] : placed.slice(1).map((end, i) => [...placed[i], ...end]);
  });
}

/** How far a point is from a segment. */
function distance(x, y, [x0, y0, x1, y1]) {
  const dx = x1 - x0, dy = y1 - y0, length = dx * dx + dy * dy;
  const t = length > 0 ? Math.min(1, Math.max(0, ((x - x0) * dx + (y - y0) * dy) / length)) : 0;
  return Math.hypot(x - x0 - t * dx, y - y0 - t * dy);
}
