// The page of the language model: what is clicked, and what is shown.

import { Attention } from './attention.js';
import { Chart, scales, Steps } from './chart.js';
import { gpu } from './engine.js';
import { fileOf, fitting, GPTEngine, models } from './gpt-engine.js';
import { OwnCard } from './own-card.js';
import { find, showCode } from './page.js';
import { Studio } from './studio.js';
import { loadText } from './text.js';
import { Writing } from './writing.js';

const { curves: [loss, held] } = new Chart(find('loss-chart'), new Steps(), {
  scale: scales.nats, colors: ['--loss', '--right'],
  describe: (last, measured) => last ? `Loss by step: ${last.value.toFixed(3)} at step ${last.step}, ${measured?.value.toFixed(3)} on the text held out` : 'Loss by step: no steps yet',
});

/** What the entries of a plan are for. */
const entries = { step: 'A training step', write: 'Writing a character', prompt: 'Taking a prompt', eval: 'Measuring on text held out', look: 'Looking inside', init: 'A new start' };

/** The text that is learned from, and that of the visitor, if it is one: { text, about }. */
let text, own;

const usualAbout = find('wall-about').textContent;

/** Takes a text, and shows where it begins: there is something to see before there is a network. */
function take(given) {
  text = given;
  find('wall').textContent = text.beginning;
  find('wall-about').textContent = own?.about ?? usualAbout;
  find('kinds').textContent = text.characters.length;
  const first = own && text.beginning.trimStart().slice(0, 24);
  writing.begin(text, first);
  attention.begin(text, first);
}

/** Learns from a text of the visitor; from Shakespeare's plays if there is none. */
async function learn(given) {
  own = given;
  text = undefined;
  if (own) take(own.text);
  await studio.start({ other: true });
  if (studio.engine) studio.train(); // until it is paused
}

const studio = new Studio({
  models, fileOf, entries,
  curves: { loss, held },
  controls: ['train', 'reset', 'show-kernels', 'save', 'load', 'ask'],
  evaluations: { every: 1000, steps: 20 },
  get perStep() { return studio.engine.perStep; },
  standing: () => `held-out loss ${find('held').textContent}`,
  choose(name) {
    find('first').textContent = '–';
    showCode(name, 'gpt').catch(() => {});
  },
  async open(name, recover) {
    if (!text) take(await loadText());
    const opened = await GPTEngine.open(name, text, recover);
    opened.engine.lasting = !own;
    return opened;
  },
  characters: () => own && text.characters.join(''),
  renewed: (engine, goesOn) => writing.renew(engine, goesOn),
  began: (engine) => writing.follow(engine),
  first(seconds) { find('first').textContent = `${seconds.toFixed(seconds < 10 ? 2 : 0)} s`; },
  async evaluate(engine) {
    const step = engine.steps, value = await engine.evaluate();
    if (studio.engine !== engine) return;
    held.add(step, value);
    find('held').textContent = value.toFixed(3);
    find('doubt').textContent = Math.exp(value).toFixed(1);
    attention.refresh();
  },
});

const writing = new Writing(studio, () => `held-out loss ${held.points.last?.value.toFixed(2) ?? '–'}`);

const attention = new Attention(() => studio.ready);
new OwnCard(learn);

const large = find('model-large');
large.disabled = await gpu() !== 'hardware';
if (large.disabled) large.title = 'It needs a GPU';
find(`model-${await fitting()}`).checked = true;
await studio.start();
document.documentElement.dataset.ready = 'true';
studio.begin();
