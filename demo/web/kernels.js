// The dialog that shows the shaders of a plan: the very text that createShaderModule got.

import { highlight } from './highlight.js';
import { find, on } from './page.js';

/** The dialog, which is made when it is first shown. */
const dialog = `
<dialog id="kernels" aria-labelledby="kernels-title">
  <header>
    <div>
      <h2 id="kernels-title">Kernels</h2>
      <p id="kernels-text" class="note"></p>
    </div>
    <button type="button" id="close-kernels" aria-label="Close">✕</button>
  </header>
  <div class="kernels-body">
    <nav id="kernel-list" aria-label="Kernels"></nav>
    <div class="kernel">
      <p id="kernel-text" class="note"></p>
      <pre tabindex="0" aria-label="WGSL source"><code id="kernel-source"></code></pre>
    </div>
  </div>
</dialog>
`;

/** Words for the ops in kernels' names; the others are words already. */
const words = {
  dot_general: 'matrix product', conv_general: 'convolution', reduce_sum: 'sum', reduce_max: 'maximum', argmax: 'likeliest class',
  random_bits: 'random numbers', overlap_add: 'sum of overlaps', sub: 'difference', add: 'sum', mul: 'product', div: 'quotient', exp: 'exponential',
  select: 'choice', copy: 'copy', concatenate: 'joining', broadcast_in_dim: 'filling', gather: 'picking', erfinv: 'inverse error function',
  scatter_add: 'scattered sum', total_sum_all: 'sum over all gradients',
};

/** What kernels do that are named after the part of a network, and not their ops. */
const kinds = { map: 'element by element', reduce: 'sums', contract: 'matrix product' };

/** The dispatches of steps, in order, those in repeats once. */
export const dispatchesOf = (steps) => steps.flatMap((step) => step.kind === 'repeat' ? dispatchesOf(step.steps) : step.kind === 'dispatch' ? [step] : []);

/** How often each kernel is dispatched in a run of an entry. */
function uses(steps, times = 1, found = new Map()) {
  for (const step of steps) {
    if (step.kind === 'repeat') uses(step.steps, times * step.count, found);
    else if (step.kind === 'dispatch') found.set(step.kernel, (found.get(step.kernel) ?? 0) + times);
  }
  return found;
}

/** How many dispatches a run of an entry makes. */
export const dispatches = (plan, entry) => {
  const { steps } = plan.entries.find(({ name }) => name === entry);
  return [...uses(steps).values()].reduce((sum, n) => sum + n, 0);
};

/** What a kernel computes, by its name: how it goes about it, its ops or the blocks they are in, and endings such as _parts. */
function opsOf({ name }) {
  const [, kind] = /^(map|reduce|contract|scan|prefix|scatter(?=_scatter))_/.exec(name) ?? [];
  const parts = name.slice(kind ? kind.length + 1 : 0).replace(/_(parts|shares|x\d+)$/, '').split(/_line_\d+(?:_|$)/);
  if (parts.length > 1) return [...new Set(parts.filter(Boolean).map((op) => words[op] ?? op.replaceAll('_', ' ')))];
  let rest = name.slice(kind ? kind.length + 1 : 0).replace(kind === 'scatter' ? /(?<=^scatter_add)_.*/ : /_(parts|shares|x\d+)$/, ''), inBlock = false;
  const found = [];
  while (rest) {
    const [block, number] = /^block(\d+)/.exec(rest) ?? [];
    const op = block ?? Object.keys(words).sort((a, b) => b.length - a.length).find((one) => rest === one || rest.startsWith(`${one}_`)) ?? rest;
    found.push(block ? `block ${Number(number) + 1}` : words[op] ?? op.replaceAll('_', ' '));
    inBlock ||= block !== undefined;
    rest = rest.slice(op.length + 1);
  }
  const all = new Set(inBlock && kinds[kind] ? [...found, kinds[kind]] : found);
  return all.size > 1 ? [...all].filter((op) => op !== words.select) : [...all]; // a choice goes with most ops, such as a ReLU
}

const overlaps = (slot, { buffer, offset, bytes }) => slot.buffer === buffer && slot.offset < offset + bytes && offset < slot.offset + slot.bytes;

/**
 * The names of the tensors that a dispatch reads and writes, of those that have names. An output
 * shares memory with earlier ones: its content is that of the last dispatch that writes there.
 */
function slotsOf(plan, entry, dispatch) {
  const writes = ({ kernel, bindings }, slot) => bindings.some((binding, i) => plan.kernels[kernel].storage[i] !== 'read' && overlaps(slot, binding));
  const outputs = entry.outputs.map((i) => plan.slots[i]).filter((slot) => dispatchesOf(entry.steps).findLast((one) => writes(one, slot)) === dispatch);
  const lasting = plan.slots.filter(({ role }) => role === 'param' || role === 'state');
  const used = [...entry.inputs.map((i) => plan.slots[i]), ...lasting].filter((slot) => dispatch.bindings.some((binding) => overlaps(slot, binding)));
  return { used: [...new Set([...used, ...outputs])], updated: lasting.filter((slot) => slot.role === 'param' && writes(dispatch, slot)) };
}

/** The lines of a program in the name of a kernel, whose ops have them as labels. */
export const linesOfKernel = ({ name }) => [...new Set(Array.from(name.matchAll(/_line_(\d+)(?![^_])/g), ([, line]) => Number(line)))];

const few = (names) => names.length > 4 ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more` : names.join(', ');

/**
 * Describes in words what a dispatch does.
 * @returns {{title: string, about: string}} about names the lines that it comes from and the tensors that it touches
 */
export function describe(plan, entry, dispatch) {
  const ops = opsOf(plan.kernels[dispatch.kernel]), { used, updated } = slotsOf(plan, entry, dispatch);
  const title = updated.length > 1 && entry.name === 'step' ? 'update of all weights' : ops.slice(0, 3).join(', ');
  const lines = linesOfKernel(plan.kernels[dispatch.kernel]).map((line) => `line ${line}`), names = used.map(({ name }) => name).filter((name) => !name.startsWith('optim/'));
  return { title: title[0].toUpperCase() + title.slice(1), about: [lines.join(', '), few(names)].filter(Boolean).join(': ') };
}

/** The names of the tensors that each dispatch of an entry touches, in order. */
export function touched(plan, entry) {
  const dispatches = dispatchesOf(entry.steps), named = [...entry.inputs.map((i) => plan.slots[i]), ...plan.slots.filter(({ role }) => role === 'param' || role === 'state')];
  return dispatches.map(({ bindings }) => named.filter((slot) => bindings.some((binding) => overlaps(slot, binding))).map(({ name }) => name));
}

/**
 * Lists kernels, and shows the source of the one that is chosen: the first, at the beginning.
 * @param {import('@rlx-go/rlx/runtime').Plan} plan
 * @param {Record<string, string>} titles what its entries are for, in the order in which they are shown
 * @param {{list: HTMLElement, text: HTMLElement, source: HTMLElement}} elements for the kernels, for words about the chosen one, and for its source
 * @param {{onOver?: (kernel: number | undefined) => void, onClick?: (kernel: number) => void}} [options] onOver gets the kernel that the
 *   pointer or the focus is at, onClick the one that is clicked
 * @returns {{mark: (kernels: ReadonlySet<number>) => void}} mark shows kernels as linked with something else, and no others
 */
export function listKernels(plan, titles, { list, text, source }, { onOver = () => {}, onClick = () => {} } = {}) {
  const counts = plan.entries.map(({ name, steps }) => ({ name, uses: uses(steps) }));
  const buttons = new Map();
  const select = (index) => {
    const kernel = plan.kernels[index];
    for (const button of buttons.values()) button.removeAttribute('aria-current');
    buttons.get(index).setAttribute('aria-current', 'true');
    const where = counts.filter((entry) => entry.uses.has(index)).map((entry) => `${entry.name} ×${entry.uses.get(index)}`);
    text.textContent = `${kernel.name}, in ${where.join(', ')}; workgroups of ${kernel.workgroup.filter((n) => n > 1).join('×') || 1}`;
    highlight(source, kernel.source, 'wgsl');
    source.parentElement.scrollTop = 0;
  };
  const groups = Object.entries(titles).map(([name, title]) => {
    const entry = plan.entries.find((one) => one.name === name);
    const items = document.createElement('ol');
    for (const dispatch of dispatchesOf(entry.steps)) {
      if (buttons.has(dispatch.kernel)) continue;
      const item = document.createElement('li'), button = document.createElement('button'), { title: what, about } = describe(plan, entry, dispatch);
      button.type = 'button';
      button.append(what, Object.assign(document.createElement('small'), { textContent: about }));
      button.addEventListener('click', () => {
        select(dispatch.kernel);
        onClick(dispatch.kernel);
      });
      for (const type of ['pointerenter', 'focus']) button.addEventListener(type, () => onOver(dispatch.kernel));
      for (const type of ['pointerleave', 'blur']) button.addEventListener(type, () => onOver(undefined));
      buttons.set(dispatch.kernel, button);
      item.append(button);
      items.append(item);
    }
    return [Object.assign(document.createElement('h3'), { textContent: title }), items];
  });
  list.replaceChildren(...groups.flat());
  const [first] = buttons.keys();
  if (first !== undefined) select(first);
  return { mark: (kernels) => { for (const [index, button] of buttons) button.classList.toggle('linked', kernels.has(index)); } };
}

/**
 * Shows the kernels of a plan in the dialog.
 * @param {import('@rlx-go/rlx/runtime').Plan} plan
 * @param {boolean} runs whether these are the kernels that run in this page
 * @param {Record<string, string>} titles what its entries are for, in the order in which they are shown
 */
export function showKernels(plan, runs, titles) {
  if (!find('kernels')) {
    document.body.insertAdjacentHTML('beforeend', dialog);
    on('close-kernels', 'click', () => find('kernels').close());
  }
  listKernels(plan, titles, { list: find('kernel-list'), text: find('kernel-text'), source: find('kernel-source') });
  find('kernels-title').textContent = runs ? `${plan.kernels.length} kernels` : `${plan.kernels.length} kernels for a GPU`;
  find('kernels-text').textContent = runs ? 'The very WGSL that this page runs, in the order of a step.' : 'They run where a browser has WebGPU. Here the CPU computes, by WebAssembly from the same graphs.';
  find('kernels').showModal();
}
