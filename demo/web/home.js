// The home page: a network that learns a picture, and a program to run.

import { openProgram, Trainer } from './rlx/runtime.js';
import { planFile } from './engine.js';
import { count, fetchOK, find, isSoftware, milliseconds, notify, on, perSecond, Speedometer, wordsOf } from './page.js';
import { Editor } from './playground/editor.js';
import { lineOf, print } from './playground/log.js';
import { Runner } from './playground/runner.js';
import { pack } from './playground/share.js';
import { scenes } from './scenes.js';
import { Target } from './target.js';

/** The side of what the network gives, which is that of demo/models/field.go, and the steps after which it rests. */
const side = 64, enough = 4000;

/** The steps for which it goes on with the picture that it knows, and those for each other picture, until the visitor takes over. */
const known = 300, other = 1500;

/** Waits for the screen to be drawn; not where the page is hidden. */
const nextFrame = () => new Promise((resolve) => requestAnimationFrame(resolve));

/** The network: it trains while there is something to learn and somebody to see it. */
class Field {
  #program;
  #trainer;
  #target;
  #onRest;
  #left = 0;
  #running = false;
  /** Whether the program ended, with its device. */
  #ended = false;
  /** The learning rate: small where it has learned already. */
  #rate = 1e-3;
  #speed = new Speedometer();
  #image = new ImageData(side, side);

  /** @param {() => boolean} onRest is called after the last step, and says whether it has set it to learn something else */
  constructor(program, target, onRest) {
    this.#program = program;
    this.#trainer = new Trainer(program);
    this.#target = target;
    this.#onRest = onRest;
    program.lost.then(() => { this.#ended = true; });
    document.addEventListener('visibilitychange', () => this.learn(0));
  }

  async forget() {
    await this.#program.run('init', { seed: Math.floor(Math.random() * 1e6) });
    this.#trainer = new Trainer(this.#program);
    this.#rate = 1e-2;
  }

  /** Begins with trained parameters, and shows what they give. */
  async begin(trained) {
    await this.#program.run('init', { seed: 1 });
    await this.#program.load(trained(this.#program.plan));
    await this.#show();
  }

  /** Learns for some more steps, of something new unless the steps say otherwise. */
  async learn(steps = enough) {
    this.#left = Math.max(this.#left, steps);
    if (steps > known) this.#rate = Math.max(this.#rate, 4e-3);
    if (this.#running) return;
    this.#running = true;
    try {
      // As many steps as fit into a frame: between 1 and 20.
      for (let perFrame = 2; this.#left > 0 && !document.hidden;) {
        const begun = performance.now();
        await this.#step(perFrame);
        this.#left -= perFrame;
        perFrame = Math.min(20, Math.max(1, Math.round(perFrame * 30 / (performance.now() - begun))));
        await nextFrame();
      }
    } finally {
      this.#running = false;
    }
    if (this.#left <= 0 && !this.#onRest()) this.#say('It rests now. Paint, and it learns again.');
  }

  /** Makes some steps and shows what they give, unless the GPU is lost: then the program goes on with those that it kept. */
  async #step(steps) {
    try {
      await this.#trainer.run({ steps, batches: this.#target.batch, inputs: { lr: this.#trainer.steps < 200 ? this.#rate : Math.min(this.#rate, 4e-3) }, every: steps });
      await this.#show();
    } catch (error) {
      if (error.kind !== 'lost' || this.#ended) throw error;
    }
  }

  async #show() {
    const { reading } = await this.#program.run('whole', {}, { read: ['picture'] }), { picture } = (await reading).values;
    for (let i = 0; i < side * side; i++) {
      for (let c = 0; c < 3; c++) this.#image.data[4 * i + c] = 255 * picture[3 * i + c];
      this.#image.data[4 * i + 3] = 255;
    }
    find('learned').getContext('2d').putImageData(this.#image, 0, 0);
    find('learned').setAttribute('aria-label', `What the network has learned after ${count(this.#trainer.steps)} steps`);
    const speed = this.#speed.add(this.#trainer.steps);
    this.#say(this.#trainer.steps ? `${count(this.#trainer.steps)} steps${speed ? `, ${perSecond(speed)} per second` : ''}.` : 'It comes trained, and goes on learning here.');
  }

  #say(text) {
    const { plan, device } = this.#program;
    find('live-text').textContent = `${text} ${plan.target === 'wasm' ? 'On the CPU of your device, by WebAssembly.' : `On your GPU, by WebGPU: ${device.description}.`}`;
  }
}

/** The parameters in web/field.bin, each the upper half of an f32, by the names that a plan has for them. */
async function trainedField() {
  const halves = new Uint16Array(await (await fetchOK('field.bin')).arrayBuffer());
  const values = new Float32Array(Uint32Array.from(halves, (half) => half << 16).buffer);
  return ({ slots }) => {
    let at = 0;
    return Object.fromEntries(slots.filter(({ role }) => role === 'param').map(({ name, shape }) => {
      const from = at;
      at += shape.reduce((a, b) => a * b, 1);
      return [name, { dtype: 'f32', shape, data: values.subarray(from, at) }];
    }));
  };
}

const openOnCPU = async (kind) => openProgram(await planFile(`field-${kind}`), { worker: true, on: 'cpu' });

/** Opens the network on the GPU, or on the CPU where there is none, or one that is software; only what runs is fetched. */
async function openField() {
  const adapter = await navigator.gpu?.requestAdapter().catch(() => null), onCPU = () => openOnCPU('relaxed').catch(() => openOnCPU('simd'));
  const asked = new URLSearchParams(location.search).get('device');
  if (!adapter || asked !== 'gpu' && isSoftware(adapter)) return onCPU();
  return planFile('field').then((plan) => openProgram(plan, { worker: true, on: 'gpu', recover: { onRecovered() {} } })).catch(onCPU);
}

/** Starts the network and what is clicked beside it. */
async function live() {
  // Until the visitor takes over it learns one picture after another; not where motion is unwelcome.
  let field, pictures = matchMedia('(prefers-reduced-motion: reduce)').matches ? 0 : scenes.length;
  const learn = (steps) => field?.learn(steps).catch((error) => notify(wordsOf(error)));
  const takeOver = () => {
    pictures = 0;
    learn();
  };
  const target = new Target(find('target'), takeOver);
  const [program, trained] = await Promise.all([openField(), trainedField()]).catch((error) => {
    find('live-text').textContent = 'The network did not start.';
    throw error;
  });
  field = new Field(program, target, () => {
    if (pictures === 0) return false;
    pictures--;
    target.next();
    learn(other);
    return true;
  });
  await field.begin(trained);
  on('another', 'click', () => {
    target.next();
    takeOver();
  });
  on('forget', 'click', async () => {
    await field.forget();
    takeOver();
  });
  learn(known);
}

/** The program beside it. */
function ten() {
  const editor = new Editor(find('editor'), { onInput: link, onRun: run });
  const stop = () => {
    runner.stop();
    find('run').textContent = 'Run';
  };
  const runner = new Runner({
    log: ({ text, level }) => print(find('log'), text, level),
    end: stop,
    failed({ message, place }) {
      print(find('log'), `${lineOf(place)}${message}`, 'error');
      editor.mark(place?.line);
      stop();
    },
  });
  function run() {
    if (runner.running) return stop();
    find('log').replaceChildren();
    editor.mark(undefined);
    find('run').textContent = 'Stop';
    return runner.run(editor.source);
  }
  async function link() { find('open').href = `playground.html#code=${await pack(editor.source)}`; }
  on('run', 'click', run);
  return fetchOK('code/xor.js').then((response) => response.text()).then((source) => {
    editor.source = source.trimEnd();
    return link();
  });
}

/** The speed of libraries in this browser, measured when it is asked for. */
function here() {
  let stop;
  const rows = new Map(), say = (text) => { find('measure-text').textContent = text; };
  function begin(job, peers) {
    find('here-job').textContent = job;
    find('here').querySelector('tbody').replaceChildren(...peers.map(({ name, title }) => {
      const row = document.createElement('tr'), head = Object.assign(document.createElement('th'), { scope: 'row', textContent: title });
      row.append(head, document.createElement('td'), document.createElement('td'));
      rows.set(name, row);
      return row;
    }));
    find('here').hidden = false;
  }
  function report(peer, state) {
    const [, rate, ms] = rows.get(peer).children;
    rate.textContent = typeof state === 'string' ? `${state} …` : state.error ? 'failed' : state.rate;
    if (state.ms) ms.textContent = milliseconds(state.ms);
    if (state.error) say(state.error);
  }
  on('measure', 'click', async () => {
    if (stop) return stop.abort();
    if (!await navigator.gpu?.requestAdapter()) return say('This browser gives pages no GPU, so there is nothing to compare.');
    stop = new AbortController();
    find('measure').textContent = 'Stop';
    say('The libraries take turns.');
    try {
      const { measureHere } = await import('./benchmark/here.js');
      await measureHere(begin, report, stop.signal);
      say('The median of three turns. The benchmark has more jobs.');
    } catch (error) {
      say(stop.signal.aborted ? 'Stopped.' : wordsOf(error));
    } finally {
      stop = undefined;
      find('measure').textContent = 'Measure again';
    }
  });
}

for (const part of [live, ten, here]) (async () => part())().catch((error) => notify(wordsOf(error)));
document.documentElement.dataset.ready = 'true';
