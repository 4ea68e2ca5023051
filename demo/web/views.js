// What the page shows of a network besides its curves: what it misreads, and what its first layer learned.

import { testCount } from './digit-data.js';
import { models } from './digit-engine.js';
import { find } from './page.js';
import { drawDigit, drawWeights } from './pictures.js';

/** How many misread digits are shown, and how many units of the first layer. */
const mostMistakes = 15, mostUnits = 24;

/** Shows the test digits that were taken for others. */
export function showMistakes(digits, predicted) {
  const wrong = [...predicted.keys()].filter((i) => predicted[i] !== digits.testDigit(i).label), shown = wrong.slice(0, mostMistakes);
  find('mistakes-text').textContent = wrong.length === 0 ? `Nothing: all ${testCount} test digits are read correctly.`
    : `${wrong.length} of ${testCount} test digits${wrong.length > shown.length ? `; the first ${shown.length} are below` : ''}. Under each: what the network reads, and what the digit is.`;
  const list = find('mistakes-list');
  while (list.children.length > shown.length) list.lastChild.remove();
  while (list.children.length < shown.length) {
    const item = document.createElement('li');
    item.append(document.createElement('canvas'), document.createElement('span'));
    item.firstChild.setAttribute('aria-hidden', 'true');
    list.append(item);
  }
  shown.forEach((i, at) => {
    const { image, label } = digits.testDigit(i), [canvas, text] = list.children[at].children;
    drawDigit(canvas, image);
    text.textContent = `${predicted[i]}, is ${label}`;
  });
}

/**
 * Shows what the first layer has learned: how far its weights are from their random start, of the
 * units that have moved the most. The weights themselves look like noise for long.
 * @param {string} name the model
 * @param {Float32Array} weights side·side rows, a column for each unit
 * @param {Float32Array} start what they began as
 */
export function showFilters(name, weights, start) {
  const { units, side, title } = models[name], canvas = find('filters');
  const pictures = Array.from({ length: units }, (_, unit) => {
    const picture = Float32Array.from({ length: side * side }, (_, p) => weights[p * units + unit] - start[p * units + unit]);
    return { unit, picture, moved: picture.reduce((sum, w) => sum + w * w, 0) };
  });
  const shown = pictures.sort((a, b) => b.moved - a.moved).slice(0, mostUnits).sort((a, b) => a.unit - b.unit);
  drawWeights(canvas, shown.map(({ picture }) => picture), { side, columns: 8, factor: side > 4 ? 4 : 1 });
  const moved = shown.some((one) => one.moved > 0), which = shown.length < units ? `the ${shown.length} of ${units} units that have changed most` : `all ${units} units`;
  canvas.setAttribute('aria-label', moved ? `How the weights of the first layer of the ${title} have changed, ${which}: pictures of ${side} by ${side}` : 'Changes of the first layer: none yet');
  find('filters-text').textContent = moved ? `How the weights have changed since their random start, in ${which}.` : 'Blank until the network trains. Each square is a unit of the layer, and shows how its weights have changed.';
}
