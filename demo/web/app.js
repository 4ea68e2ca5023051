// The page: what is clicked, and what is shown.

import { decodePlan } from '/rlx/runtime.js';
import { Chart, Points, scales, Steps } from './chart.js';
import { loadDigits, testCount, trainCount } from './digits.js';
import { Engine, lossesSince, models, open, planFile } from './engine.js';
import { highlight } from './highlight.js';
import { dispatches, showKernels } from './kernels.js';
import { drawWall, whenToRedraw } from './pictures.js';
import { prepareRace, race } from './race.js';
import { Reading } from './reading.js';
import { showFilters, showMistakes } from './views.js';

const find = (id) => document.getElementById(id);
const seed = 1;

/** How often, while training, the test digits are looked at and the state is kept, in milliseconds. */
const evaluateEvery = 700, keepEvery = 2000;

const axis = new Steps();
const lossChart = new Chart(find('loss-chart'), axis, {
  scale: scales.loss, color: '--loss',
  describe: (step, loss) => step === undefined ? 'Loss by step: no steps yet' : `Loss by step: ${loss.toFixed(3)} at step ${step}`,
});
const accuracyChart = new Chart(find('accuracy-chart'), axis, {
  scale: scales.accuracy, color: '--right',
  describe: (step, right) => step === undefined ? 'Accuracy by step: no steps yet' : `Accuracy by step: ${right.toFixed(1)} % at step ${step}`,
});

/** What needs a network. */
const controls = ['train', 'reset', 'show-kernels', 'save', 'load', 'race'];

let digits, engine, looked;
let opening = 0;

/** The training that runs, or the last one. */
let running = Promise.resolve();

/**
 * The state of each model when it was last kept, with its curves: what is there to go on from when
 * a device is lost, or another network was looked at.
 * @type {Map<string, {steps: number, tensors: object, loss: Points, accuracy: Points}>}
 */
const kept = new Map();

const chosen = () => document.querySelector('input[name=model]:checked').value;
const say = (text) => { find('status').textContent = text; };
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;
const count = (n) => n.toLocaleString('en');

function enable(on) {
  for (const id of controls) find(id).disabled = !on;
}

/** Shows an error that ended the session with its kind, and from where one can go on. */
function fail(error) {
  engine?.pause();
  const last = kept.get(chosen());
  find('problem-kind').textContent = error.kind ? `${error.kind}:` : '';
  find('problem-text').textContent = error.kind === 'lost' && engine
    ? `the device is gone, and the network on it. ${last ? `Its state at step ${count(last.steps)} was kept; ${count(engine.steps - last.steps)} steps since are gone.` : `Its ${count(engine.steps)} steps are gone.`}`
    : error.message;
  find('reopen').textContent = last ? `Go on from step ${count(last.steps)}` : 'Start again at step 0';
  find('anew').hidden = !last;
  find('problem').hidden = false;
  enable(false);
}

/** Shows an error that changed nothing. */
function tell(text) {
  find('notice-text').textContent = text;
  find('notice').hidden = false;
}

/** Keeps the state of a network as it is now, with its curves up to there. */
async function keep(current) {
  const loss = lossChart.points.copy(), accuracy = accuracyChart.points.copy();
  const { steps, tensors } = await current.save();
  complete(loss, tensors);
  if (steps > 0) kept.set(current.name, { steps, tensors, loss, accuracy });
}

/** Adds the losses that a state has and a curve has not yet. */
function complete(points, tensors) {
  for (const { step, loss } of lossesSince(tensors, points.last?.step ?? 0)) points.add(step, loss);
}

/** Opens a session for the chosen network, which goes on from what was kept of it, unless it is to begin anew. */
async function start({ anew = false } = {}) {
  const turn = ++opening, name = chosen(), old = engine;
  engine = undefined;
  enable(false);
  showPaused();
  find('problem').hidden = find('notice').hidden = true;
  find('model-text').textContent = models[name].text;
  setRate(models[name].rate);
  showCode(name).catch(() => {}); // the page does without
  try {
    old?.pause();
    await (old && keep(old).catch(() => {})); // a lost device has nothing to keep
    old?.close();
    if (anew) kept.delete(name);
    digits ??= await begin();
    const { session, kind, reason } = await open(name);
    if (turn !== opening) return session.close();
    const current = new Engine(session, name, digits);
    current.rate = rateOf(find('rate'));
    engine = current;
    session.lost.then((error) => engine === current && fail(error));
    showDevice(session, kind, reason);
    await renew(kept.get(name));
    if (engine === current) enable(true);
  } catch (error) {
    if (turn === opening) fail(error);
  }
}

/** Loads the digits, and shows them: there is something to see before there is a network. */
async function begin() {
  const loaded = await loadDigits();
  const showWall = () => drawWall(find('wall'), (i) => loaded.trainDigit(i), trainCount);
  new ResizeObserver(showWall).observe(find('wall'));
  whenToRedraw(showWall);
  reading.begin(loaded);
  find('take').disabled = false;
  return loaded;
}

function showDevice({ deviceName, plan }, kind, reason) {
  find('device-kind').textContent = kind === 'gpu' ? 'WebGPU' : 'CPU';
  find('device-kind').dataset.kind = kind;
  find('device').textContent = kind === 'gpu' ? deviceName : 'WebAssembly, in a worker';
  find('dispatches').textContent = kind === 'gpu' ? `a step: ${dispatches(plan, 'step')} kernels, 1 submission` : '';
  find('device-reason').hidden = !reason;
  find('device-reason').textContent = reason ? `${sentence(reason)} So the CPU does it.` : '';
  find('show-kernels').textContent = kind === 'gpu' ? 'Show the WGSL' : 'Show the WGSL for GPUs';
  prepareRace(kind === 'gpu' ? undefined : sentence(reason));
}

/** Makes the network new, or what it was when it was kept or saved. */
async function renew({ tensors, loss = new Points(), accuracy = new Points() } = {}) {
  const current = engine;
  await current.reset(seed);
  current.start = (await current.evaluate()).filters;
  await current.save(); // the first one makes room for those to come, which then create nothing
  if (tensors) await current.reset(seed, tensors);
  if (engine !== current) return;
  const curve = loss.copy();
  complete(curve, tensors ?? {});
  lossChart.points = curve;
  accuracyChart.points = accuracy.copy();
  showSteps(current);
  find('speed').textContent = '–';
  find('loss').textContent = lossChart.points.last?.value.toFixed(4) ?? '–';
  await evaluate();
}

/** Shows how many steps were made: before the first there is no curve, but what it will learn from. */
function showSteps({ steps }) {
  find('step').textContent = count(steps);
  find('wall-figure').hidden = steps > 0;
  find('charts').hidden = steps === 0;
}

async function reset() {
  const { name } = engine;
  await renew();
  kept.delete(name); // now no copy of what was before is under way
}

/** Steps a second, over the last two seconds. */
class Speedometer {
  #marks = [];

  add(step) {
    const now = performance.now();
    this.#marks.push({ now, step });
    while (this.#marks.length > 2 && now - this.#marks[0].now > 2000) this.#marks.shift();
    const [first] = this.#marks;
    return now > first.now ? (step - first.step) / (now - first.now) * 1000 : undefined;
  }
}

function showPaused() {
  find('train').textContent = 'Train';
  find('train').classList.remove('on');
}

async function train() {
  const current = engine, speed = new Speedometer();
  find('train').textContent = 'Pause';
  find('train').classList.add('on');
  say('Training');
  reading.stay();
  speed.add(current.steps);
  const timers = [
    setInterval(() => { if (pending === 0) evaluate(current); }, evaluateEvery),
    setInterval(() => { if (engine === current) keep(current).catch(() => {}); }, keepEvery), // what is wrong, the training tells
  ];
  try {
    await current.train({
      onLosses(first, losses) {
        if (engine !== current) return;
        losses.forEach((loss, i) => lossChart.add(first + i + 1, loss));
        const steps = first + losses.length, perSecond = speed.add(steps);
        showSteps({ steps });
        find('loss').textContent = losses.at(-1).toFixed(4);
        if (perSecond) find('speed').textContent = perSecond < 10 ? perSecond.toFixed(1) : count(Math.round(perSecond));
        reading.live();
      },
    });
    if (engine === current) await evaluate(current);
    if (engine === current) await keep(current);
  } catch (error) {
    if (engine === current && error.kind !== 'closed') fail(error);
  } finally {
    timers.forEach(clearInterval);
    if (engine === current) showPaused();
    say(`Paused at step ${current.steps}, ${find('accuracy').textContent} of the test digits right`);
  }
}

let evaluations = Promise.resolve(), pending = 0;

/** Evaluates the network, after what evaluations are under way: what is shown last is how it is now. */
function evaluate(current = engine) {
  pending++;
  return evaluations = evaluations.then(() => evaluateNow(current)).finally(() => { pending--; });
}

/** Looks at the test digits: accuracy, mistakes, first layer; and at the drawing anew. */
async function evaluateNow(current) {
  if (engine !== current) return;
  try {
    const step = current.steps;
    looked = { current, ...await current.evaluate() };
    if (engine !== current) return;
    const right = looked.correct / testCount * 100;
    accuracyChart.add(step, right);
    find('accuracy').textContent = `${right.toFixed(1)} %`;
    await showLooks();
    await reading.refresh();
  } catch (error) {
    if (engine === current && error.kind !== 'closed') fail(error);
  }
}

/** Draws in two tasks, neither of which is long. */
async function showLooks() {
  showMistakes(digits, looked.predicted);
  await new Promise((resolve) => setTimeout(resolve));
  showFilters(looked.current.name, looked.filters, looked.current.start);
}

/** Shows the few lines that make the chosen network. */
async function showCode(name) {
  const response = await fetch(`code/${name}.js`), source = response.ok ? await response.text() : '';
  if (name === chosen()) highlight(find('code'), source, 'js');
}

const rateOf = (slider) => 10 ** Number(slider.value);

function setRate(rate) {
  find('rate').value = Math.log10(rate);
  showRate();
}

function showRate() {
  const rate = rateOf(find('rate')), text = Number(rate.toPrecision(2)).toString();
  find('rate-value').textContent = text;
  find('rate').setAttribute('aria-valuetext', text);
  if (engine) engine.rate = rate;
}

async function runRace() {
  const current = engine, wasTraining = current.training;
  find('race').disabled = true;
  await pause();
  try {
    await race({ model: current.name, digits, rate: 1e-3 });
  } finally {
    find('race').disabled = !engine;
  }
  if (wasTraining && engine === current) await (running = train());
}

/** Gives the browser the whole file, of one moment, or nothing. Training goes on. */
async function saveWeights() {
  const { name } = engine, [{ steps, tensors }, { encodeWeights }] = await Promise.all([engine.save(), import('./weights.js')]);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([encodeWeights(name, tensors)]));
  link.download = `digits-${name}.safetensors`;
  link.click();
  say(`Saved the weights of step ${count(steps)}`);
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Takes the weights of a file, which is read and checked as a whole before anything changes. */
async function loadWeights(file) {
  const current = engine, { decodeWeights } = await import('./weights.js');
  let tensors;
  try {
    tensors = decodeWeights(await file.arrayBuffer(), current.name, decodePlan(await planFile(current.name)));
  } catch (error) {
    return tell(`${file.name} is not loaded, and the network is as it was: ${error.message}.`);
  }
  if (engine !== current) return tell(`${file.name} is not loaded: another network was chosen meanwhile.`);
  find('notice').hidden = true;
  await pause();
  await renew({ tensors });
  await keep(current);
  say(`Loaded the weights of step ${count(current.steps)}`);
}

/** Handles an event. An error that did not end the session is told; one that did is, where it ended. */
const on = (id, type, handle) => find(id).addEventListener(type, async (event) => {
  try {
    await handle(event);
  } catch (error) {
    if (!['lost', 'closed'].includes(error.kind)) tell(error.message);
  }
});

/** Ends the training that runs, if one does. */
function pause() {
  engine.pause();
  return running;
}

const reading = new Reading({
  say,
  async ask(image) {
    const current = engine;
    try {
      return current && { probabilities: await current.predict(image), steps: current.steps };
    } catch (error) {
      if (engine === current && error.kind !== 'closed') fail(error);
    }
  },
});

on('train', 'click', () => engine.training ? pause() : (running = train()));
on('reset', 'click', async () => {
  const wasTraining = engine.training;
  await pause();
  await reset();
  if (wasTraining) await (running = train());
});
on('rate', 'input', showRate);
on('reopen', 'click', () => start());
on('anew', 'click', () => start({ anew: true }));
on('race', 'click', runRace);
on('show-kernels', 'click', async () => {
  const { plan } = engine.session, runs = plan.target === 'webgpu';
  showKernels(runs ? plan : decodePlan(await planFile(chosen())), runs);
});
on('close-kernels', 'click', () => find('kernels').close());
on('close-notice', 'click', () => { find('notice').hidden = true; });
on('save', 'click', saveWeights);
on('load', 'change', async ({ target }) => {
  const [file] = target.files;
  if (file && engine) await loadWeights(file);
  target.value = ''; // the same file may be chosen again
});
for (const input of document.querySelectorAll('input[name=model]')) input.addEventListener('change', () => start());
on('clear', 'click', () => reading.clear());
on('take', 'click', () => reading.take());
whenToRedraw(() => { if (looked) showLooks(); });

await start();
document.documentElement.dataset.ready = 'true';
