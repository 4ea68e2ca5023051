// Tuning: an adapter that learns from a text of the visitor, and what it changes.

import { generate, openTuning, tuningMemoryOf } from '../rlx/lm.js';
import { Chart, Points, scales, Steps } from '../chart.js';
import { size } from './files.js';
import { count, download, find, notify, on, perSecond, powers, say, Slider } from '../page.js';

/** The tokens of a step, the most steps of one go, which the visitor ends before, and the positions of the model while it is tuned. */
const length = 64, mostSteps = 100_000, context = 256;
/** The tokens of a text that is compared. */
const compared = 48;

/** A few lines to begin with, in the public domain: Edward Lear, 1871. */
const sample = `The Owl and the Pussy-cat went to sea
In a beautiful pea-green boat,
They took some honey, and plenty of money,
Wrapped up in a five-pound note.
The Owl looked up to the stars above,
And sang to a small guitar.
`;

/** The controls of an adapter that is open. */
const ofTuning = ['forget', 'save-adapter', 'save-training', 'compare-go'];

const scale = { ...scales.nats, place: (v) => v / 6, marks: [[0, '0'], [2, '2'], [4, '4'], [6, '6']] };

/** The panel of the page that tunes the model that is open. */
export class TuningPanel {
  #given;
  #tuning;
  #stop;
  #page;
  #curve;
  #rate = new Slider('tune-rate', powers);

  /**
   * @param {{reopen: (open: () => Promise<object>) => Promise<void>, moved: () => void}} page `reopen` closes the model that talks, and has another in
   *   its place; `moved` is called when that is on another device
   */
  constructor(page) {
    this.#page = page;
    this.#rate.value = 2e-3;
    find('tune-source').value = sample;
    this.#suggest();
    on('tune-source', 'input', () => this.#suggest());
    [this.#curve] = new Chart(find('tune-chart'), new Steps(), {
      scale, colors: ['--loss'], describe: (last) => last ? `Loss by step: ${last.value.toFixed(3)} at step ${last.step}` : 'Loss by step: no steps yet',
    }).curves;
    on('tune', 'click', () => this.#stop ? this.#stop.abort() : this.#train());
    on('forget', 'click', () => this.#forget());
    on('save-adapter', 'click', () => this.#save());
    on('save-training', 'click', async () => download('training.safetensors', await this.#tuning.saveCheckpoint()));
    on('load-training', 'change', () => this.#goOn(find('load-training').files[0]));
    on('compare-form', 'submit', (event) => {
      event.preventDefault();
      return this.#compare();
    });
  }

  /** The first words of the text, to compare how it goes on. */
  #suggest() { find('compare-prompt').value = find('tune-source').value.trim().split(/\s+/).slice(0, 3).join(' '); }

  /** Begins with a model that was opened: { file, tokenizer, name }; undefined while there is none. */
  begin(given) {
    this.#stop?.abort();
    this.#given = given;
    this.#tuning = undefined;
    this.#curve.points = new Points();
    find('compare').hidden = true;
    find('tune-state').textContent = given ? 'Not tuned yet.' : 'No model is open.';
    find('tune-memory').textContent = '';
    this.#enable();
  }

  #enable(running = false) {
    find('tune').disabled = !this.#given;
    find('tune').textContent = running ? 'Pause' : 'Tune';
    find('load-training').disabled = running || !this.#given;
    for (const id of ofTuning) find(id).disabled = running || !this.#tuning;
  }

  /** Opens the model once more, with an adapter: that takes the place of the one that talks. */
  async #open() {
    find('tune-state').textContent = 'Compiling the training step';
    const given = this.#given, options = { context: Math.min(context, given.config.context), length };
    const bytes = await tuningMemoryOf(given.file, options);
    if (given !== this.#given) return;
    find('tune-memory').textContent = `It takes ${size(bytes)} of memory, weights and all.`;
    await this.#page.reopen(async (onProgress) => {
      const recover = { onRecovered: (event) => { if (given === this.#given) this.#recovered(event); } };
      this.#tuning = await openTuning(given.file, { ...options, recover, onProgress });
      return this.#tuning.model;
    });
  }

  /** Says that a lost device was replaced. What was learned up to a snapshot is there. */
  #recovered({ step, lostSteps }) {
    this.#page.moved();
    notify(`The device was lost, and the model is open again. The adapter goes on from step ${count(step)}.${lostSteps > 0 && this.#stop ? ` The last ${count(lostSteps)} steps are made again.` : ''}`);
  }

  async #train() {
    const text = find('tune-source').value;
    if (!text.trim()) throw new Error('There is no text to learn from: paste one.');
    const stop = this.#stop = new AbortController();
    this.#enable(true);
    try {
      if (!this.#tuning) await this.#open();
      if (stop.signal.aborted || !this.#tuning) return;
      const begun = performance.now(), from = this.#tuning.steps;
      await this.#tuning.train(text, this.#given.tokenizer, {
        steps: mostSteps, rate: this.#rate.value, signal: stop.signal,
        onLoss: (step, loss) => {
          if (step > (this.#curve.points.last?.step ?? 0)) this.#curve.add(step, loss); // others are made again after a lost device
          this.#show(step, loss, (step - from) * length / (performance.now() - begun) * 1000);
        },
      });
    } finally {
      if (this.#stop === stop) this.#stop = undefined;
      this.#enable();
    }
    find('compare').hidden = false;
    say('Tuning has paused.');
    await this.#compare();
  }

  #shown;

  /** Shows a step, no more often than the screen is drawn. */
  #show(step, loss, speed) {
    const due = this.#shown === undefined;
    this.#shown = `Step ${count(step)}, loss ${loss.toFixed(3)}, ${perSecond(speed)} tokens per second.`;
    if (due) {
      requestAnimationFrame(() => {
        find('tune-state').textContent = this.#shown;
        this.#shown = undefined;
      });
    }
  }

  async #forget() {
    await this.#tuning.reset();
    this.#curve.points = new Points();
    find('compare').hidden = true;
    find('tune-state').textContent = 'The adapter is as it began.';
    say('The adapter is as it began.');
  }

  async #save() {
    for (const [name, bytes] of Object.entries(await this.#tuning.save(this.#given.name))) download(name, bytes);
  }

  /** Goes on from a training that was saved. */
  async #goOn(file) {
    if (!file) return;
    find('load-training').value = ''; // so that the same file can be chosen again
    for (const id of ['tune', 'load-training', ...ofTuning]) find(id).disabled = true;
    try {
      if (!this.#tuning) await this.#open();
      await this.#tuning?.loadCheckpoint(await file.arrayBuffer());
    } finally {
      this.#enable();
    }
    if (!this.#tuning) return;
    this.#curve.points = new Points();
    find('tune-state').textContent = `The training of ${file.name}, after ${count(this.#tuning.steps)} steps: Tune goes on with it.`;
    say(find('tune-state').textContent);
    find('compare').hidden = false;
    await this.#compare();
  }

  /** How a text goes on by the model alone, and with the adapter. */
  async #compare() {
    const prompt = find('compare-prompt').value;
    if (!prompt) return;
    const { model } = this.#tuning, { tokenizer } = this.#given, text = () => generate(model, tokenizer, prompt, { maxTokens: compared }).text();
    find('compare-go').disabled = true;
    try {
      find('after').textContent = prompt + await text();
      find('before').textContent = prompt + await this.#tuning.without(text);
      find('after-steps').textContent = `${count(this.#tuning.steps)} steps`;
    } finally {
      find('compare-go').disabled = false;
    }
  }
}
