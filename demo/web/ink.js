// From strokes to what the network knows: the way the digits of the data were made. They were
// bitmaps of 32×32, cut at the ink and centred, and each of the 8×8 counts says how many pixels
// of a 4×4 block have ink.

/** The side of the bitmap, and of a block of it that becomes one count. */
export const bitmapSide = 32, blockSide = 4;

/** The side of the picture that a network gets. */
export const side = bitmapSide / blockSide;

/** How wide a pen is in the bitmap: the digits of the data have about as much ink with it. */
const penWidth = 4.4;

/** @typedef {{x: number, y: number}} Point */

/**
 * The 32×32 bitmap of a drawing: as large as fits with its pen, centred, not distorted.
 * @param {Point[][]} strokes lines of points, in any unit, y downwards
 * @returns {Uint8Array} 1 for ink, row by row
 */
export function bitmap(strokes) {
  const bits = new Uint8Array(bitmapSide ** 2), segments = fit(strokes);
  for (let y = 0; y < bitmapSide; y++) {
    for (let x = 0; x < bitmapSide; x++) {
      if (segments.some((segment) => distance(x + 0.5, y + 0.5, segment) <= penWidth / 2)) bits[y * bitmapSide + x] = 1;
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

/** Cuts at the ink and centres: the drawing's segments in pixels of the bitmap. */
function fit(strokes) {
  const points = strokes.flat();
  if (points.length === 0) return [];
  const box = (values) => [Math.min(...values), Math.max(...values)];
  const [left, right] = box(points.map(({ x }) => x)), [top, bottom] = box(points.map(({ y }) => y));
  const room = bitmapSide - penWidth, extent = Math.max(right - left, bottom - top);
  const scale = extent > 0 ? room / extent : 0;
  const place = ({ x, y }) => [
    bitmapSide / 2 + (x - (left + right) / 2) * scale,
    bitmapSide / 2 + (y - (top + bottom) / 2) * scale,
  ];
  return strokes.filter((stroke) => stroke.length > 0).flatMap((stroke) => {
    const placed = stroke.map(place);
    return placed.length === 1 ? [[...placed[0], ...placed[0]]] : placed.slice(1).map((end, i) => [...placed[i], ...end]);
  });
}

/** How far a point is from a segment. */
function distance(x, y, [x0, y0, x1, y1]) {
  const dx = x1 - x0, dy = y1 - y0, length = dx * dx + dy * dy;
  const t = length > 0 ? Math.min(1, Math.max(0, ((x - x0) * dx + (y - y0) * dy) / length)) : 0;
  return Math.hypot(x - x0 - t * dx, y - y0 - t * dy);
}
