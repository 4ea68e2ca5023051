// What every page of the demo has: its words for what happens, and a few of its parts.

import { highlight } from './highlight.js';

export const find = (id) => document.getElementById(id);

/** A whole number with commas between its thousands. toLocaleString takes some 20 ms when it is first called. */
export const count = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ',');

/** Milliseconds to three digits, as a reader writes them: 1,180 ms, not 1.18e+3 ms. */
export const milliseconds = (ms) => `${ms < 999.5 ? ms.toPrecision(3) : count(Math.round(ms))} ms`;

export const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

/** Fetches a path, or throws an error that names the file. */
export async function fetchOK(path) {
  const refused = (why) => new Error(`${`${path}`.split('/').at(-1)} cannot be loaded: ${why}`);
  const response = await fetch(path).catch(() => { throw refused('is the device offline? Load the page again once it is back.'); });
  if (!response.ok) throw refused(`the server answers ${response.status}. Load the page again.`);
  return response;
}

/** How browsers say that a file did not come: Chromium, Firefox and WebKit, of a request and of a module. */
const notLoaded = /Failed to fetch|NetworkError|Load failed|error loading dynamically|Importing a module script failed/;

/** What an error says to a visitor. */
export const wordsOf = ({ message }) => !notLoaded.test(message) ? message
  : `A part of this page did not come from its server: ${navigator.onLine ? 'try again, or load the page again' : 'this device is offline. Load the page again once it is back'}.`;

/** What an adapter is called, or the words for its maker and generation, which may be none. */
export const adapterName = ({ info: { vendor, architecture, description } = {} }) => description || [vendor, architecture].filter(Boolean).join(' ');

/** Whether an adapter computes on the CPU, as SwiftShader, Mesa's llvmpipe and Windows' basic driver do. */
export const isSoftware = (adapter) => Boolean(adapter.info?.isFallbackAdapter ?? adapter.isFallbackAdapter) || /swiftshader|llvmpipe|basic render/i.test(adapterName(adapter));

/** Says something to visitors who listen to the page rather than look at it. */
export const say = (text) => { find('status').textContent = text; };

/** Shows an error that changed nothing. */
export function notify(text) {
  find('notice-text').textContent = text;
  find('notice').hidden = false;
}

/** Handles an event. An error that did not end the program is shown; one that did is shown where it ended. */
export const on = (id, type, handle) => find(id).addEventListener(type, async (event) => {
  try {
    await handle(event);
  } catch (error) {
    if (!['lost', 'closed'].includes(error.kind)) notify(wordsOf(error));
  }
});

/** The model that is chosen. */
export const chosen = () => document.querySelector('input[name=model]:checked').value;

/** Shows where a network runs, and why not elsewhere; `work` describes a step on a GPU. */
export function showDevice({ device }, kind, reason, work) {
  find('device-kind').textContent = kind === 'gpu' ? 'WebGPU' : 'CPU';
  find('device-kind').dataset.kind = kind;
  find('device').textContent = kind === 'gpu' ? device.description : 'WebAssembly, in a worker';
  find('dispatches').textContent = kind === 'gpu' ? work : '';
  find('device-reason').hidden = !reason;
  find('device-reason').textContent = reason ? `${sentence(reason)} It runs on the CPU instead.` : '';
  find('show-kernels').textContent = kind === 'gpu' ? 'Show the WGSL' : 'Show the WGSL for GPUs';
}

/** The scales of sliders: from its position to its value, and back. */
export const plain = { value: Number, place: (value) => value };
export const powers = { value: (place) => 10 ** place, place: Math.log10 };

/** A slider with its value as two digits next to it: `id`, and `id-value`. */
export class Slider {
  #slider;
  #scale;

  /** @param {string} id @param {plain | powers} scale @param {(value: number) => void} [onChange] */
  constructor(id, scale, onChange) {
    this.#slider = find(id);
    this.#scale = scale;
    this.#show();
    on(id, 'input', () => {
      this.#show();
      onChange?.(this.value);
    });
  }

  get value() { return this.#scale.value(this.#slider.value); }
  set value(value) {
    this.#slider.value = this.#scale.place(value);
    this.#show();
  }

  #show() {
    const text = Number(this.value.toPrecision(2)).toString();
    find(`${this.#slider.id}-value`).textContent = text;
    this.#slider.setAttribute('aria-valuetext', text);
  }
}

/** Steps a second, over the last two seconds. */
export class Speedometer {
  #marks = [];

  add(step) {
    const now = performance.now();
    this.#marks.push({ now, step });
    while (this.#marks.length > 2 && now - this.#marks[0].now > 2000) this.#marks.shift();
    const [first] = this.#marks;
    return now > first.now ? (step - first.step) / (now - first.now) * 1000 : undefined;
  }
}

/** A number a second as it is shown. */
export const perSecond = (n) => n < 10 ? n.toFixed(1) : count(Math.round(n));

/** Gives the browser a file. */
export function download(name, bytes) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([bytes]));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Shows the few lines that make a network, of the folder code, if it is still chosen when they are here. A page does without. */
export async function showCode(name, source) {
  const response = await fetch(`code/${source}.js`), text = response.ok ? await response.text() : '';
  if (name === chosen()) highlight(find('code'), text, 'js');
}

/** On a phone the links to the pages go over the edge: the one of this page is moved to where it can be seen. */
function showCurrentLink() {
  const nav = document.querySelector('.top nav'), link = nav?.querySelector('[aria-current]');
  if (link) nav.scrollLeft += link.getBoundingClientRect().left - nav.getBoundingClientRect().left - (nav.clientWidth - link.offsetWidth) / 2;
}
if (globalThis.document) {
  requestAnimationFrame(showCurrentLink); // measuring before would lay the page out twice
  find('close-notice')?.addEventListener('click', () => { find('notice').hidden = true; });
}
