// The page: what is clicked, and what is shown.

import { decodePlan } from '/rlx/runtime.js';
import { Chart, scales } from './chart.js';
import { loadDigits, testCount } from './digits.js';
import { Engine, models, open, planFile } from './engine.js';
import { counts } from './ink.js';
import { dispatches, showKernels } from './kernels.js';
import { Pad } from './pad.js';
import { drawCounts, drawDigit, drawFilters } from './pictures.js';
import { race } from './race.js';

const find = (id) => document.getElementById(id);
const seed = 1;

/** How often the test digits are looked at while training, in milliseconds. */
const evaluateEvery = 700;

const lossChart = new Chart(find('loss-chart'), {
  scale: scales.loss, color: '--loss',
  describe: (step, loss) => step === undefined ? 'Loss by step: no steps yet' : `Loss by step: ${loss.toFixed(3)} at step ${step}`,
});
const accuracyChart = new Chart(find('accuracy-chart'), {
  scale: scales.accuracy, color: '--right',
  describe: (step, right) => step === undefined ? 'Accuracy by step: no steps yet' : `Accuracy by step: ${right.toFixed(1)} % at step ${step}`,
});

/** How many misread digits are shown. */
const mostMistakes = 15;

let digits, engine, filters, picture, truth;
let opening = 0;

/** The training that runs, or the last one. */
let running = Promise.resolve();

const chosen = () => document.querySelector('input[name=model]:checked').value;
const say = (text) => { find('status').textContent = text; };

/** Shows an error with its kind, and what can be done. */
function fail(error) {
  engine?.pause();
  find('problem-kind').textContent = error.kind ? `${error.kind}:` : '';
  find('problem-text').textContent = error.message;
  find('problem').hidden = false;
  for (const id of ['train', 'reset', 'save', 'race']) find(id).disabled = true;
}

/** Opens a session for the chosen network, and makes it new. */
async function start() {
  const turn = ++opening, name = chosen();
  engine?.close();
  engine = undefined;
  showPaused();
  find('problem').hidden = true;
  find('model-text').textContent = models[name].text;
  setRate(models[name].rate);
  for (const id of ['train', 'reset', 'show-kernels', 'save', 'race']) find(id).disabled = true;
  try {
    digits ??= await loadDigits();
    const { session, kind, reason } = await open(name);
    if (turn !== opening) return session.close();
    engine = new Engine(session, name, digits);
    session.lost.then((error) => engine?.session === session && fail(error));
    showDevice(session, kind, reason);
    await reset();
    for (const id of ['train', 'reset', 'show-kernels', 'save', 'race']) find(id).disabled = false;
  } catch (error) {
    if (turn === opening) fail(error);
  }
}

function showDevice({ deviceName, plan }, kind, reason) {
  find('device-kind').textContent = kind === 'gpu' ? 'WebGPU' : 'CPU';
  find('device-kind').dataset.kind = kind;
  find('device').textContent = deviceName;
  find('device-reason').hidden = !reason;
  find('device-reason').textContent = reason ? `It runs on the CPU, because there is no GPU to run on: ${reason}.` : '';
  find('dispatches').textContent = kind === 'gpu' ? `${dispatches(plan, 'step')} kernels, 1 submission` : 'WebAssembly';
}

async function reset() {
  await engine.reset(seed);
  lossChart.clear();
  accuracyChart.clear();
  for (const id of ['loss', 'speed', 'accuracy']) find(id).textContent = '–';
  find('step').textContent = '0';
  await evaluate();
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
  speed.add(current.steps);
  const looking = setInterval(() => { if (pending === 0) evaluate(current); }, evaluateEvery);
  try {
    await current.train({
      onLosses(first, losses) {
        if (engine !== current) return;
        losses.forEach((loss, i) => lossChart.add(first + i + 1, loss));
        const step = first + losses.length, perSecond = speed.add(step);
        find('loss').textContent = losses.at(-1).toFixed(4);
        find('step').textContent = step.toLocaleString('en');
        if (perSecond) find('speed').textContent = perSecond < 10 ? perSecond.toFixed(1) : Math.round(perSecond).toLocaleString('en');
      },
    });
    if (engine === current) await evaluate(current);
  } catch (error) {
    if (engine === current && error.kind !== 'closed') fail(error);
  } finally {
    clearInterval(looking);
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
    const step = current.steps, { correct, predicted, filters: weights } = await current.evaluate();
    if (engine !== current) return;
    const right = correct / testCount * 100;
    accuracyChart.add(step, right);
    find('accuracy').textContent = `${right.toFixed(1)} %`;
    showMistakes(predicted, correct);
    showFilters(weights);
    await predict();
  } catch (error) {
    if (engine === current && error.kind !== 'closed') fail(error);
  }
}

function showMistakes(predicted, correct) {
  const wrong = [...predicted.keys()].filter((i) => predicted[i] !== digits.testDigit(i).label), shown = wrong.slice(0, mostMistakes);
  find('mistakes-text').textContent = correct === testCount ? 'Nothing: all 360 test digits are read right.'
    : `${wrong.length} of ${testCount} test digits${wrong.length > shown.length ? `, the first ${shown.length} here` : ''}: what it reads, and what they are.`;
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

function showFilters(weights = filters) {
  if (!weights) return;
  filters = weights;
  const { pictures, side, title } = models[chosen()];
  drawFilters(find('filters'), weights, { side, count: pictures, columns: pictures > 64 ? 16 : 8 });
  find('filters').setAttribute('aria-label', `Weights of the first layer of the ${title}: ${pictures} pictures of ${side} by ${side}`);
}

function showBars() {
  find('bars').replaceChildren(...Array.from({ length: 10 }, (_, digit) => {
    const item = document.createElement('li');
    for (const name of ['digit', 'bar', 'percent']) {
      const part = document.createElement('span');
      part.className = name;
      item.append(part);
    }
    item.firstChild.textContent = digit;
    item.children[1].append(document.createElement('i'));
    return item;
  }));
}

/** Asks the network about the picture, if there is one. */
async function predict() {
  const bars = [...find('bars').children];
  const probabilities = picture && engine ? await engine.predict(picture) : new Float32Array(10), best = probabilities.indexOf(Math.max(...probabilities));
  bars.forEach((item, digit) => {
    const p = probabilities[digit];
    item.querySelector('i').style.setProperty('width', `${p * 100}%`);
    item.lastChild.textContent = picture ? `${(p * 100).toFixed(p < 0.1 ? 1 : 0)} %` : '';
    item.classList.toggle('best', Boolean(picture) && digit === best);
  });
  const untrained = engine?.steps === 0 ? ' It has learned nothing yet: train it first.' : '';
  const label = truth === undefined ? '' : ` It is ${truth}.`;
  find('verdict').textContent = picture ? `It reads ${best}.${label}${untrained}` : '';
}

/** Shows the network a picture, or nothing; a label is what it is, where that is known. */
async function look(image, label) {
  picture = image;
  truth = label;
  drawCounts(find('counts'), image ?? new Uint8Array(64));
  find('counts').setAttribute('aria-label', image ? `What the network gets, row by row: ${Array.from({ length: 8 }, (_, r) => Array.from(image.slice(8 * r, 8 * r + 8)).join(' ')).join('; ')}` : 'What the network gets: nothing yet');
  await predict().catch(fail);
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
  await pause();
  find('race').disabled = true;
  find('race-text').textContent = 'Running…';
  const cells = (where) => [...find(`race-${where}`).querySelectorAll('td')];
  const show = (where, { steps, perSecond, loss, device }) => {
    const texts = [steps, perSecond.toFixed(1), loss.toFixed(4)];
    cells(where).forEach((cell, i) => { cell.textContent = texts[i]; });
    find(`race-${where}`).title = device;
  };
  try {
    find('race-text').textContent = await race({
      model: chosen(), digits, rate: 1e-3, onProgress: show,
      onError: (where, error) => cells(where).forEach((cell, i) => { cell.textContent = i === 0 ? error.message : '–'; }),
    });
  } finally {
    find('race').disabled = false;
  }
}

async function saveWeights() {
  const { encodeSafetensors } = await import('/rlx/safetensors.js');
  const file = encodeSafetensors(await engine.session.save(), { model: chosen() });
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([file]));
  link.download = `digits-${chosen()}.safetensors`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function loadWeights(file) {
  const { decodeSafetensors } = await import('/rlx/safetensors.js');
  await pause();
  await engine.session.load(decodeSafetensors(await file.arrayBuffer()).tensors);
  await evaluate();
}

/** Handles an event, and shows the error if there is one. */
const on = (id, type, handle) => find(id).addEventListener(type, async (event) => {
  try {
    await handle(event);
  } catch (error) {
    fail(error);
  }
});

/** Ends the training that runs, if one does. */
function pause() {
  engine.pause();
  return running;
}

on('train', 'click', () => engine.training ? pause() : (running = train()));
on('reset', 'click', async () => {
  const wasTraining = engine.training;
  await pause();
  await reset();
  if (wasTraining) await (running = train());
});
on('rate', 'input', showRate);
on('reopen', 'click', start);
on('race', 'click', runRace);
on('show-kernels', 'click', async () => {
  const { plan } = engine.session, runs = plan.kernels.length > 0;
  showKernels(runs ? plan : decodePlan(await planFile(chosen())), runs);
});
on('close-kernels', 'click', () => find('kernels').close());
on('save', 'click', saveWeights);
on('load', 'change', ({ target }) => target.files[0] && loadWeights(target.files[0]));
for (const input of document.querySelectorAll('input[name=model]')) input.addEventListener('change', start);

const pad = new Pad(find('pad'), (strokes) => look(strokes.length > 0 ? counts(strokes) : undefined));
on('clear', 'click', () => pad.clear());
on('take', 'click', () => {
  pad.clear();
  const { image, label } = digits.testDigit(Math.floor(Math.random() * testCount));
  return look(image, label);
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  showFilters();
  if (engine) evaluate();
  drawCounts(find('counts'), picture ?? new Uint8Array(64));
});

showBars();
drawCounts(find('counts'), new Uint8Array(64));
lossChart.redraw();
accuracyChart.redraw();
await start();
document.documentElement.dataset.ready = 'true';
