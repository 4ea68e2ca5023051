// The page of the digits: what is clicked, and what is shown.

import { Chart, scales, Steps } from './chart.js';
import { DigitEngine, fileOf, models } from './digit-engine.js';
import { loadDigits, testCount, trainCount } from './digit-data.js';
import { openFitting } from './engine.js';
import { find, on, say, sentence, showCode } from './page.js';
import { drawWall, whenToRedraw } from './pictures.js';
import { prepareRace, race } from './race.js';
import { Reading } from './reading.js';
import { Studio } from './studio.js';
import { showFilters, showMistakes } from './views.js';

const axis = new Steps();
const { curves: [loss] } = new Chart(find('loss-chart'), axis, {
  scale: scales.loss, colors: ['--loss'],
  describe: (last) => last ? `Loss by step: ${last.value.toFixed(3)} at step ${last.step}` : 'Loss by step: no steps yet',
});
const { curves: [accuracy] } = new Chart(find('accuracy-chart'), axis, {
  scale: scales.accuracy, colors: ['--right'],
  describe: (last) => last ? `Accuracy by step: ${last.value.toFixed(1)} % at step ${last.step}` : 'Accuracy by step: no steps yet',
});

/** What the entries of a plan are for. */
const entries = { step: 'A training step', predict: 'Reading your digit', eval: 'Reading the test digits', init: 'A new start' };

let digits, looked;

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

const studio = new Studio({
  models, fileOf, entries,
  curves: { loss, accuracy },
  controls: ['train', 'reset', 'show-kernels', 'save', 'load', 'race'],
  evaluations: { every: 700, steps: 0 },
  perStep: 1,
  standing: () => `${find('accuracy').textContent} of the test digits right`,
  choose(name) { showCode(name, name).catch(() => {}); },
  async open(name, recover) {
    digits ??= await begin();
    const { program, kind, reason } = await openFitting(fileOf(name), name === 'mlp', recover);
    return { engine: new DigitEngine(program, name, digits), kind, reason };
  },
  opened(kind, reason) { prepareRace(kind === 'gpu' ? undefined : sentence(reason)); },
  began: () => reading.stay(),
  stepped: () => reading.live(),
  evaluate,
});

/** Looks at the test digits: accuracy, mistakes, first layer; and at the drawing anew. */
async function evaluate(engine) {
  const step = engine.steps;
  looked = { engine, ...await engine.evaluate() };
  if (studio.engine !== engine) return;
  const right = looked.correct / testCount * 100;
  accuracy.add(step, right);
  find('accuracy').textContent = `${right.toFixed(1)} %`;
  await showLooks();
  await reading.refresh();
}

/** Draws in two tasks, neither of which is long. */
async function showLooks() {
  showMistakes(digits, looked.predicted);
  await new Promise((resolve) => setTimeout(resolve));
  showFilters(looked.engine.name, looked.filters, looked.engine.start);
}

async function runRace() {
  const { engine } = studio, wasTraining = engine.training;
  find('race').disabled = true;
  await studio.pause();
  try {
    await race({ model: engine.name, digits, rate: 1e-3 });
  } finally {
    find('race').disabled = !studio.engine;
  }
  if (wasTraining && studio.engine === engine) await studio.train();
}

const reading = new Reading({
  say,
  async ask(image) {
    const { ready: engine } = studio;
    try {
      return engine && { probabilities: await engine.predict(image), steps: engine.steps };
    } catch (error) {
      studio.failOf(engine, error);
    }
  },
});

on('race', 'click', runRace);
on('clear', 'click', () => reading.clear());
on('take', 'click', () => reading.take());
whenToRedraw(() => { if (looked) showLooks(); });

await studio.start();
document.documentElement.dataset.ready = 'true';
studio.begin();
