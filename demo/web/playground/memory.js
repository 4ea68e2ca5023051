// The memory of an entry over its dispatches, as a picture: a bar is a tensor between its first and its last use.

import { dispatchesOf } from '../kernels.js';

const svg = (name, attributes) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};

/** Bytes as a person reads them. */
export const bytesText = (bytes) => bytes < 1024 ? `${bytes} B` : bytes < 1 << 20 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / (1 << 20)).toFixed(1)} MiB`;

/**
 * The temporary tensors of an entry: where they are in memory, and the first and the last dispatch that uses them.
 * @returns {{buffer: number, offset: number, bytes: number, first: number, last: number}[]}
 */
export function lifetimes(plan, entry) {
  const open = new Map(), closed = [];
  dispatchesOf(entry.steps).forEach(({ kernel, bindings }, at) => {
    const access = plan.kernels[kernel].storage;
    const uses = bindings.map((binding, i) => ({ binding, reads: access[i] === 'read' })).filter(({ binding }) => plan.buffers[binding.buffer].kind === 'temp');
    for (const { binding: { buffer, offset, bytes }, reads } of uses.sort((a, b) => b.reads - a.reads)) {
      const key = `${buffer} ${offset} ${bytes}`, life = open.get(key);
      if (life && (reads || life.last === at)) {
        life.last = at;
        continue;
      }
      if (life) closed.push(life);
      open.set(key, { buffer, offset, bytes, first: at, last: at });
    }
  });
  return [...closed, ...open.values()];
}

/**
 * Draws the memory of an entry.
 * @param {SVGElement} element
 * @param {(dispatch: number | undefined) => void} onOver gets the dispatch that the pointer is over
 * @param {(dispatch: number) => void} onClick gets the dispatch that is clicked
 */
export function showMemory(element, plan, entry, onOver, onClick) {
  const lives = lifetimes(plan, entry), count = dispatchesOf(entry.steps).length;
  const ends = new Map(), bases = new Map();
  for (const { buffer, offset, bytes } of lives) ends.set(buffer, Math.max(ends.get(buffer) ?? 0, offset + bytes));
  let height = 0;
  for (const [buffer, end] of ends) {
    bases.set(buffer, height);
    height += end;
  }
  const wide = 1000, high = 200, x = (at) => wide * at / Math.max(1, count), y = (bytes) => high * bytes / Math.max(1, height);
  element.setAttribute('viewBox', `0 0 ${wide} ${high}`);
  const columns = svg('g', {});
  element.replaceChildren(columns, ...lives.map(({ buffer, offset, bytes, first, last }) => {
    const bar = svg('rect', { class: 'life', x: x(first) + 1, y: y(bases.get(buffer) + offset), width: Math.max(2, x(last - first + 1) - 2), height: Math.max(2, y(bytes) - 1), rx: 2 });
    const title = svg('title', {});
    title.textContent = `${bytesText(bytes)}, from dispatch ${first + 1} to ${last + 1} of ${count}`;
    bar.append(title);
    return bar;
  }));
  const dispatchAt = ({ clientX }) => {
    const box = element.getBoundingClientRect();
    return Math.min(count - 1, Math.floor((clientX - box.left) / box.width * count));
  };
  element.onpointermove = (event) => onOver(dispatchAt(event));
  element.onpointerleave = () => onOver(undefined);
  element.onclick = (event) => onClick(dispatchAt(event));
  return { bytes: height, mark(dispatches) {
    columns.replaceChildren(...dispatches.map((at) => svg('rect', { class: 'column', x: x(at), y: 0, width: x(1), height: high })));
  } };
}
