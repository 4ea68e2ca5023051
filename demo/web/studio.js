// A page that trains: it opens a program for the model that is chosen, trains it and pauses, keeps
// what it learned, also until the next visit, and saves and loads it. What a page shows besides, it does itself when called.

import { decodePlan } from './rlx/runtime.js';
import { Points } from './chart.js';
import { kindOf, lossesSince, planFile } from './engine.js';
import { forget, recall, retain } from './kept.js';
import { dispatches, showKernels } from './kernels.js';
import { chosen, count, download, find, notify, on, perSecond, powers, say, showDevice, Slider, Speedometer, wordsOf } from './page.js';

const seed = 1;

/**
 * The parts that differ between pages.
 * @typedef {object} Page
 * @property {Record<string, {title: string, text: string, rate: number}>} models what can be chosen
 * @property {(name: string) => string} fileOf the name of a model's files
 * @property {{loss: import('./chart.js').Curve} & Record<string, import('./chart.js').Curve>} curves of the training; `loss` is drawn here
 * @property {Record<string, string>} entries what the entries of a plan are for, in the order in which they are shown
 * @property {string[]} controls ids of what needs a network
 * @property {{every: number, steps: number}} evaluations while training: milliseconds, and steps, at least, from one to the next
 * @property {(name: string) => void} choose shows what is chosen, before there is a program
 * @property {(name: string, recover: import('@rlx-go/rlx/runtime').RecoverOptions) => Promise<{engine: import('./engine.js').Engine, kind: 'gpu' | 'cpu', reason?: string}>} open
 * @property {(kind: 'gpu' | 'cpu', reason?: string) => void} [opened] there is a program
 * @property {(engine: object, goesOn: boolean) => void} [renewed] the network is new, or of a file, or continues from where it was kept
 * @property {(engine: object) => Promise<void>} evaluate looks at the network, and shows it
 * @property {(engine: object) => void} [began] training begins
 * @property {(engine: object) => void} [stepped]
 * @property {(seconds: number) => void} [first] how long it took from the choice to the first step's loss, but for the visitor's time
 * @property {number} perStep how much of what the speed counts is in a step
 * @property {() => string | undefined} [characters] what the numbers of the network mean, if that is not the usual
 * @property {() => string} standing how good the network is, in words
 */

export class Studio {
  /** The network in training, undefined while none is ready to be. */
  engine;
  /** That network once it has weights: what a visitor asks before is not asked of it. */
  ready;
  #page;
  #rate;
  #opening = 0;
  /** The training that runs, or the last one. */
  #running = Promise.resolve();
  /**
   * The state of each model when it was last kept, with its curves: what is there to go on from when
   * a device is lost, or another network was looked at.
   * @type {Map<string, {steps: number, tensors: object, curves: Record<string, Points>}>}
   */
  #kept = new Map();
  /** When the browser was given a state to keep. */
  #retained = -Infinity;
  #evaluations = Promise.resolve();
  #pending = 0;
  /** The step that was evaluated last. */
  #evaluated = 0;
  /** Milliseconds from a choice to its program, until its first step is reported. */
  #opened;

  /** @param {Page} page */
  constructor(page) {
    this.#page = page;
    this.#rate = new Slider('rate', powers, (rate) => { if (this.engine) this.engine.rate = rate; });
    on('train', 'click', () => {
      remember(this.engine.training);
      return this.engine.training ? this.pause() : this.train();
    });
    on('reset', 'click', () => this.#reset());
    on('reopen', 'click', () => this.start());
    on('anew', 'click', () => this.start({ anew: true }));
    on('show-kernels', 'click', () => this.#showKernels());
    on('save', 'click', () => this.#save());
    on('load', 'change', async ({ target }) => {
      const [file] = target.files;
      if (file && this.engine) await this.#load(file);
      target.value = ''; // the same file may be chosen again
    });
    document.addEventListener('visibilitychange', () => { if (document.hidden && this.engine?.training) this.#keep(this.engine).catch(() => {}); });
    for (const input of document.querySelectorAll('input[name=model]')) input.addEventListener('change', () => this.start());
  }

  #enable(on) {
    for (const id of this.#page.controls) find(id).disabled = !on;
  }

  /** Shows an error that ended the program with its kind, and where training can continue from. */
  fail(error) {
    this.engine?.pause();
    const last = this.#kept.get(chosen());
    find('problem-kind').textContent = error.kind ? `${error.kind}:` : '';
    find('problem-text').textContent = error.kind === 'lost' && this.engine
      ? `the device is gone, and the network on it. ${last ? `Its state at step ${count(last.steps)} was kept; ${count(this.engine.steps - last.steps)} steps since are gone.` : `Its ${count(this.engine.steps)} steps are gone.`}`
      : wordsOf(error);
    find('reopen').textContent = last ? `Go on from step ${count(last.steps)}` : this.engine ? 'Start again at step 0' : 'Try again';
    find('anew').hidden = !last;
    find('problem').hidden = false;
    this.#enable(false);
  }

  /** Shows an error of a network, unless another one has taken its place, or it was closed. Of a lost GPU its program says whether it is back. */
  failOf(engine, error) {
    if (this.engine === engine && !['closed', 'lost'].includes(error.kind)) this.fail(error);
  }

  #showDevice(kind, reason) {
    const { program } = this.engine;
    showDevice(program, kind, reason, `a step: ${dispatches(program.plan, 'step')} kernels, 1 submission`);
    this.#page.opened?.(kind, reason);
  }

  /** What is done when the GPU is lost: the program goes on by itself, and its snapshots are kept in case it does not. */
  #recovery(name) {
    const isShown = () => this.engine?.name === name;
    return {
      onSnapshot: ({ tensors }) => { if (isShown()) this.#put(this.engine, tensors, this.#curves(), keepEvery); },
      onRecovered: ({ lostSteps }) => {
        if (!isShown()) return;
        const { engine } = this, { program } = engine, again = lostSteps ? ` The last ${count(lostSteps)} steps are made again.` : '';
        this.#showDevice(kindOf(program), program.fallbackReason);
        notify(`The GPU was gone for a moment. The network goes on from step ${count(engine.steps)}.${again}`);
      },
    };
  }

  /**
   * Opens a program for the chosen network, which continues from its kept state, unless it is to start again.
   * @param {{anew?: boolean, other?: boolean}} [options] other: there is something else to learn, so what was kept in this visit is of no use
   */
  async start({ anew = false, other = false } = {}) {
    const turn = ++this.#opening, name = chosen(), old = this.engine, { models } = this.#page;
    this.ready = this.engine = undefined;
    this.#enable(false);
    showPaused();
    find('problem').hidden = find('notice').hidden = true;
    find('model-text').textContent = models[name].text;
    this.#rate.value = models[name].rate;
    this.#page.choose(name);
    try {
      old?.pause();
      await (old && this.#keep(old).catch(() => {})); // a lost device has nothing to keep
      old?.close();
      if (other) this.#kept.clear();
      if (anew) this.#forget(name, old?.lasting);
      const begun = performance.now(), { engine, kind, reason } = await this.#page.open(name, this.#recovery(name));
      if (turn !== this.#opening) return engine.close();
      this.#opened = performance.now() - begun;
      engine.rate = this.#rate.value;
      this.engine = engine;
      engine.program.lost.then((error) => this.engine === engine && this.fail(error));
      this.#showDevice(kind, reason);
      const last = this.#kept.get(name) ?? await this.#recall(engine);
      if (this.engine === engine) await this.#renew(last);
      if (this.engine === engine) this.#enable(true);
    } catch (error) {
      if (turn === this.#opening) this.fail(error);
    }
  }

  /** Makes the network new, or what it was when it was kept or saved. */
  async #renew({ tensors, curves, recalled = false } = {}) {
    const current = this.engine;
    await current.reset(seed);
    await current.save(); // the first one makes room for those to come, which then create nothing
    if (tensors) await current.reset(seed, tensors);
    if (this.engine !== current) return;
    this.ready = current;
    for (const [name, curve] of Object.entries(this.#page.curves)) curve.points = curves?.[name].copy() ?? new Points();
    const { loss } = this.#page.curves;
    complete(loss.points, tensors ?? {});
    showSteps(current);
    find('speed').textContent = '–';
    find('loss').textContent = loss.points.last?.value.toFixed(4) ?? '–';
    find('goes-on').hidden = !recalled;
    find('goes-on').textContent = recalled ? `It goes on from step ${count(current.steps)} of your last visit, which this browser kept.` : '';
    this.#page.renewed?.(current, curves !== undefined);
    await this.evaluate();
  }

  async #reset() {
    const wasTraining = this.engine.training, { name, lasting } = this.engine;
    await this.pause();
    this.#forget(name, lasting);
    await this.#renew();
    this.#forget(name, lasting); // again: now no copy of what was before is under way
    if (wasTraining) await this.train();
  }

  #curves() { return Object.fromEntries(Object.entries(this.#page.curves).map(([name, { points }]) => [name, points.copy()])); }

  /** Keeps the state of a network as it is now, with its curves up to there. */
  async #keep(current) {
    const curves = this.#curves(), { tensors } = await current.save();
    this.#put(current, tensors, curves);
  }

  /** Keeps the state of a network no longer; that of the visit before only if a later one might go on from this network. */
  #forget(name, lasting = true) {
    this.#kept.delete(name);
    if (lasting) forget(this.#page.fileOf(name));
  }

  /** What the browser kept of a network in a visit before, checked as a file would be; undefined if there is nothing to go on from. */
  async #recall({ name, lasting, program }) {
    const key = this.#page.fileOf(name), found = lasting ? await recall(key) : undefined;
    if (!found) return undefined;
    try {
      const { checkWeights } = await import('./weights.js');
      checkWeights(found.tensors, this.#page.models[name].title, program.plan);
      const curves = Object.fromEntries(Object.keys(this.#page.curves).map((curve) => [curve, Points.of(found.curves[curve])]));
      return { tensors: found.tensors, curves, recalled: true };
    } catch {
      forget(key);
      return undefined;
    }
  }

  /** Keeps a state in this page, and in the browser if that is `apart` milliseconds after the last one there. */
  #put({ name, lasting }, tensors, curves, apart = 0) {
    const [steps] = tensors['history/count'].data, now = performance.now();
    complete(curves.loss, tensors);
    if (steps === 0) return;
    this.#kept.set(name, { steps, tensors, curves });
    if (!lasting || now < this.#retained + apart || bytesOf(tensors) > mostKept) return;
    this.#retained = now;
    retain(this.#page.fileOf(name), { tensors, curves });
  }

  /**
   * Trains by itself for a while, as a visitor sees first what the page is for; not where motion is unwelcome, or once it was
   * paused in this tab.
   */
  async begin() {
    const current = this.engine;
    if (!current || wasPaused() || matchMedia('(prefers-reduced-motion: reduce)').matches) return;
    const asked = new AbortController(), { signal } = asked;
    document.addEventListener('click', () => asked.abort(), { once: true, signal }); // the visitor's from now on
    const end = setTimeout(() => { if (!signal.aborted && this.engine === current) this.pause(); }, alone);
    await this.train();
    clearTimeout(end);
    asked.abort();
  }

  /** Trains until it is paused. */
  train() { return this.#running = this.#train(); }

  async #train() {
    const current = this.engine, { evaluations } = this.#page;
    find('train').textContent = 'Pause';
    find('train').classList.add('on');
    say('Training');
    this.#page.began?.(current);
    const timer = setInterval(() => { if (this.#pending === 0 && current.steps >= this.#evaluated + evaluations.steps) this.evaluate(current); }, evaluations.every);
    const keeping = setInterval(() => { if (kindOf(current.program) === 'cpu') this.#keep(current).catch(() => {}); }, keepEvery); // a GPU gives snapshots; an error is the training's, too
    try {
      await current.train({ onLosses: this.#follow(current) });
      if (this.engine === current) await this.evaluate(current);
      if (this.engine === current) await this.#keep(current);
    } catch (error) {
      this.failOf(current, error);
    } finally {
      clearInterval(timer);
      clearInterval(keeping);
      if (this.engine === current) showPaused();
      say(`Paused at step ${count(current.steps)}, ${this.#page.standing()}`);
    }
  }

  /** What is done with the losses of a training. */
  #follow(current) {
    const speed = new Speedometer(), begun = performance.now();
    speed.add(current.steps);
    return (first, losses) => {
      if (this.engine !== current) return;
      if (this.#opened !== undefined) this.#page.first?.((this.#opened + performance.now() - begun) / 1000);
      this.#opened = undefined;
      losses.forEach((loss, i) => this.#page.curves.loss.add(first + i + 1, loss));
      const steps = first + losses.length, fast = speed.add(steps);
      showSteps({ steps });
      find('loss').textContent = losses.at(-1).toFixed(4);
      if (fast) find('speed').textContent = perSecond(fast * this.#page.perStep);
      this.#page.stepped?.(current);
    };
  }

  /** Ends the training that runs, if one does. */
  pause() {
    this.engine.pause();
    return this.#running;
  }

  /** Evaluates the network, after what evaluations are under way: what is shown last is how it is now. */
  evaluate(current = this.engine) {
    this.#pending++;
    return this.#evaluations = this.#evaluations.then(() => this.#evaluate(current)).finally(() => { this.#pending--; });
  }

  async #evaluate(current) {
    if (this.engine !== current) return;
    this.#evaluated = current.steps;
    try {
      await this.#page.evaluate(current);
    } catch (error) {
      this.failOf(current, error);
    }
  }

  /** Shows the kernels of the network's plan; on the CPU, those that a GPU would run. */
  async #showKernels() {
    const { plan } = this.engine.program, { fileOf, entries } = this.#page, runs = plan.target === 'webgpu';
    showKernels(runs ? plan : decodePlan(await planFile(fileOf(chosen()))), runs, entries);
  }

  /** Gives the browser the whole file, of one moment, or nothing. Training continues. */
  async #save() {
    const { name } = this.engine, [{ steps, tensors }, { encodeWeights }] = await Promise.all([this.engine.save(), import('./weights.js')]);
    download(`${this.#page.fileOf(name)}.safetensors`, encodeWeights(name, tensors, this.#page.characters?.()));
    say(`Saved the weights of step ${count(steps)}`);
  }

  /** Takes the weights of a file, which is read and checked as a whole before anything changes. */
  async #load(file) {
    const current = this.engine, { models, fileOf } = this.#page, { decodeWeights } = await import('./weights.js');
    let tensors;
    try {
      tensors = decodeWeights(await file.arrayBuffer(), current.name, models, decodePlan(await planFile(fileOf(current.name))), this.#page.characters?.());
    } catch (error) {
      return notify(`${file.name} is not loaded, and the network is as it was: ${error.message}.`);
    }
    if (this.engine !== current) return notify(`${file.name} is not loaded: another network was chosen meanwhile.`);
    find('notice').hidden = true;
    await this.pause();
    await this.#renew({ tensors });
    await this.#keep(current);
    say(`Loaded the weights of step ${count(current.steps)}`);
  }
}

/** Adds the losses that a state has and a curve has not yet. */
function complete(points, tensors) {
  for (const { step, loss } of lossesSince(tensors, points.last?.step ?? 0)) points.add(step, loss);
}

/** Shows how many steps were made: before the first there is no curve, but what it will learn from. */
function showSteps({ steps }) {
  find('step').textContent = count(steps);
  find('wall-figure').hidden = steps > 0;
  find('charts').hidden = steps === 0;
}

/** How many milliseconds pass from one state that the browser keeps to the next, and how many bytes it has at most. */
const keepEvery = 10_000, mostKept = 64 << 20;

const bytesOf = (tensors) => Object.values(tensors).reduce((sum, { data }) => sum + data.byteLength, 0);

/** For how many milliseconds a network trains by itself. */
const alone = 60_000;

/** Whether a visitor paused the training of this page, and that. Without storage it begins again. */
const pausedKey = `rlx paused ${location.pathname}`;
const wasPaused = () => {
  try {
    return sessionStorage.getItem(pausedKey) === 'true';
  } catch {
    return false;
  }
};
const remember = (paused) => {
  try {
    sessionStorage.setItem(pausedKey, paused);
  } catch { /* a page without storage begins again */ }
};

function showPaused() {
  find('train').textContent = 'Train';
  find('train').classList.remove('on');
}
