// The home page: a network that learns a picture, and a program to run.

import { openProgram, Trainer } from './rlx/runtime.js';
import { planFile } from './engine.js';
import { count, fetchOK, find, on, perSecond, Speedometer, tell } from './page.js';
import { Editor } from './playground/editor.js';
import { lineOf, print } from './playground/log.js';
import { Runner } from './playground/runner.js';
import { pack } from './playground/share.js';
import { scenes } from './scenes.js';

/** The side of what the network gives, the points of a step, and the steps after which it rests: those of demo/models/field.go. */
const side = 64, points = 1024, enough = 4000;

/** Waits for the screen to be drawn; not where the page is hidden. */
const nextFrame = () => new Promise((resolve) => requestAnimationFrame(resolve));

/** The picture to learn: a scene, and what the visitor paints over it. */
class Target {
  #canvas = find('target');
  #context = this.#canvas.getContext('2d', { willReadFrequently: true });
  #scene = 0;
  #pixels;

  /** @param {() => void} onChange is called when it has changed */
  constructor(onChange) {
    this.#draw();
    let from;
    const place = ({ offsetX, offsetY }) => [offsetX / this.#canvas.clientWidth * this.#canvas.width, offsetY / this.#canvas.clientHeight * this.#canvas.height];
    this.#canvas.addEventListener('pointerdown', (event) => {
      this.#canvas.setPointerCapture(event.pointerId);
      from = place(event);
      this.#paint(from, from);
      onChange();
    });
    this.#canvas.addEventListener('pointermove', (event) => {
      if (!from || !event.buttons) return;
      const to = place(event);
      this.#paint(from, to);
      from = to;
      onChange();
    });
    this.#canvas.addEventListener('pointerup', () => { from = undefined; });
  }

  next() {
    this.#scene = (this.#scene + 1) % scenes.length;
    this.#draw();
  }

  #draw() {
    scenes[this.#scene](this.#context, this.#canvas.width);
    this.#read();
  }

  #paint(from, to) {
    Object.assign(this.#context, { strokeStyle: '#ffffff', lineWidth: 14, lineCap: 'round' });
    this.#context.beginPath();
    this.#context.moveTo(...from);
    this.#context.lineTo(...to);
    this.#context.stroke();
    this.#read();
  }

  #read() { this.#pixels = this.#context.getImageData(0, 0, this.#canvas.width, this.#canvas.height).data; }

  /** Points drawn at random, and their colours. The arrays are used again by the next call. */
  batch = (() => {
    const places = new Float32Array(2 * points), colors = new Float32Array(3 * points);
    return () => {
      const wide = this.#canvas.width;
      for (let i = 0; i < points; i++) {
        const x = Math.floor(Math.random() * wide), y = Math.floor(Math.random() * wide);
        places[2 * i] = (x + 0.5) / wide;
        places[2 * i + 1] = (y + 0.5) / wide;
        for (let c = 0; c < 3; c++) colors[3 * i + c] = this.#pixels[4 * (y * wide + x) + c] / 255;
      }
      return { points: places, colors };
    };
  })();
}

/** The network: it trains while there is something to learn and somebody to see it. */
class Field {
  #program;
  #trainer;
  #target;
  #left = 0;
  #running = false;
  #speed = new Speedometer();
  #image = new ImageData(side, side);

  constructor(program, target) {
    this.#program = program;
    this.#trainer = new Trainer(program);
    this.#target = target;
    document.addEventListener('visibilitychange', () => this.learn(0));
  }

  async forget() {
    await this.#program.run('init', { seed: Math.floor(Math.random() * 1e6) });
    this.#trainer = new Trainer(this.#program);
  }

  /** Learns for some more steps. */
  async learn(steps = enough) {
    this.#left = Math.max(this.#left, steps);
    if (this.#running) return;
    this.#running = true;
    try {
      // As many steps as fit into a frame: between 1 and 20.
      for (let perFrame = 2; this.#left > 0 && !document.hidden;) {
        const begun = performance.now();
        await this.#trainer.run({ steps: perFrame, batches: this.#target.batch, inputs: { lr: this.#trainer.steps < 200 ? 1e-2 : 4e-3 }, every: perFrame });
        await this.#show();
        this.#left -= perFrame;
        perFrame = Math.min(20, Math.max(1, Math.round(perFrame * 30 / (performance.now() - begun))));
        await nextFrame();
      }
    } finally {
      this.#running = false;
    }
    if (this.#left <= 0) this.#say('It rests now: paint, and it goes on.');
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
    this.#say(`${count(this.#trainer.steps)} steps${speed ? `, ${perSecond(speed)} a second` : ''}.`);
  }

  #say(text) {
    const { plan, device } = this.#program;
    find('live-text').textContent = `${text} ${plan.target === 'wasm' ? 'On the CPU of your device, by WebAssembly.' : `On your GPU, by WebGPU: ${device.description}.`}`;
  }
}

/** Opens the network on the GPU, or on the CPU where there is none; only what runs is fetched. */
async function openField() {
  const adapter = await navigator.gpu?.requestAdapter().catch(() => null), onCPU = async () => openProgram(await planFile('field-cpu'), { worker: true, on: 'cpu' });
  if (!adapter) return onCPU();
  return planFile('field').then((plan) => openProgram(plan, { worker: true, on: 'gpu' })).catch(onCPU);
}

/** Starts the network and what is clicked beside it. */
async function live() {
  let field;
  const learn = () => field?.learn().catch(({ message }) => tell(message));
  const target = new Target(learn);
  const program = await openField();
  field = new Field(program, target);
  await field.forget();
  on('another', 'click', () => {
    target.next();
    learn();
  });
  on('forget', 'click', async () => {
    await field.forget();
    learn();
  });
  learn();
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
    editor.source = source;
    return link();
  });
}

on('close-notice', 'click', () => { find('notice').hidden = true; });
for (const part of [live, ten]) part().catch(({ message }) => tell(message));
document.documentElement.dataset.ready = 'true';
