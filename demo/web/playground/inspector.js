// How a program is compiled: its graphs, their kernels, and memory over time.

import { dispatchesOf, linesOfKernel, listKernels, touched } from '../kernels.js';
import { find } from '../page.js';
import { countOps, GraphText } from './graphs.js';
import { linked } from './links.js';
import { bytesText, showMemory } from './memory.js';

/** Fills a list of choices, and keeps what was chosen if it is still there. */
function fill(select, names) {
  const { value } = select;
  select.replaceChildren(...names.map((name) => new Option(name, name)));
  if (names.includes(value)) select.value = value;
}

export class Inspector {
  #text;
  #links;
  /** Marks the dispatches of the entry that is shown. */
  #markDispatches = () => {};
  #graphs = new Map();
  #plans = new Map();
  /** The entries of all plans, by the names in the list of choices. */
  #entries = new Map();

  /** @param {import('./links.js').Links} links */
  constructor(links) {
    this.#links = links;
    this.#text = new GraphText(find('graph-text'), links);
    links.add((link) => this.#markDispatches(link));
    find('graph-choice').addEventListener('change', () => this.#showGraph());
    find('entry-choice').addEventListener('change', () => this.#showEntry());
  }

  clear() {
    this.#graphs.clear();
    this.#plans.clear();
    this.#markDispatches = () => {};
    this.#listGraphs();
    this.#listEntries();
  }

  /** A graph as it was written, or an entry as it is compiled. */
  addGraph({ name, text, entry }) {
    this.#graphs.set(entry ? `${name} (compiled)` : name, text);
    this.#listGraphs();
  }

  addPlan({ name, plan, runs }) {
    this.#plans.set(name, { plan, runs });
    this.#listEntries();
  }

  #listGraphs() {
    fill(find('graph-choice'), [...this.#graphs.keys()]);
    find('graph-panel').dataset.empty = this.#graphs.size === 0;
    this.#showGraph();
  }

  #listEntries() {
    const several = this.#plans.size > 1;
    this.#entries = new Map([...this.#plans].flatMap(([name, { plan, runs }]) => plan.entries.map((entry) => [several ? `${name}: ${entry.name}` : entry.name, { plan, entry, runs }])));
    fill(find('entry-choice'), [...this.#entries.keys()]);
    find('kernel-panel').dataset.empty = this.#entries.size === 0;
    this.#showEntry();
  }

  #showGraph() {
    const text = this.#graphs.get(find('graph-choice').value) ?? '';
    this.#text.show(text);
    find('graph-note').textContent = text && `${countOps(text)} ops. Point at a value to see where it is used and what belongs to it in the program and the kernels. A click keeps the marks.`;
  }

  #showEntry() {
    const chosen = this.#entries.get(find('entry-choice').value);
    if (chosen) this.#showKernels(chosen);
  }

  #showKernels({ plan, entry, runs }) {
    const dispatches = dispatchesOf(entry.steps), links = this.#links, names = touched(plan, entry);
    /** @type {import('./links.js').Link[]} what each dispatch belongs to: the lines of its ops, and the tensors that it touches */
    const own = dispatches.map(({ kernel }, at) => ({ lines: linesOfKernel(plan.kernels[kernel]), names: names[at] }));
    const of = (kernel) => own[dispatches.findIndex((one) => one.kernel === kernel)];
    const kernels = listKernels(plan, { [entry.name]: `${entry.name}, in order` }, { list: find('kernel-items'), text: find('kernel-words'), source: find('kernel-wgsl') }, {
      onOver: (kernel) => links.over(kernel === undefined ? undefined : of(kernel)),
      onClick: (kernel) => links.pin(of(kernel)),
    });
    const memory = showMemory(find('memory'), plan, entry, (at) => links.over(own[at]), (at) => links.pin(own[at]));
    this.#markDispatches = (link) => {
      const self = dispatches[own.indexOf(link)]?.kernel; // a kernel is marked alone here
      const marked = own.flatMap((one, at) => (self === undefined ? linked(link, one) : dispatches[at].kernel === self) ? [at] : []);
      memory.mark(marked);
      kernels.mark(new Set(marked.map((at) => dispatches[at].kernel)));
    };
    links.refresh();
    find('memory-note').textContent = memory.bytes > 0
      ? `${bytesText(memory.bytes)} for what is computed on the way: each bar is a tensor from its first use to its last, each column a dispatch.`
      : 'Nothing is stored on the way.';
    find('kernel-note').textContent = `${dispatches.length} dispatches of ${new Set(dispatches.map(({ kernel }) => kernel)).size} kernels make a run of this entry${runs ? '' : ' where a browser has WebGPU; here it ran on the CPU'}.`;
  }
}
