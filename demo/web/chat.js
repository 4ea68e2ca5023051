// The page of language models: which one is open, and what is done with it.

import { init } from './rlx/index.js';
import { configOf, memoryOf, openModel } from './rlx/lm.js';
import { dropped, Kept, openAddress, openFiles, size } from './chat/files.js';
import { Talk } from './chat/talk.js';
import { TuningPanel } from './chat/tuning.js';
import { count, fetchOK, find, notify, on, say, sentence, wordsOf } from './page.js';

/** Contexts to choose from, in tokens. */
const contexts = [256, 512, 1024, 2048, 4096, 8192], usualContext = 1024;

/** The tiny model learned from texts of 96 characters, and loses the thread beyond. */
const tinyContext = 128;

const talk = new Talk(), panel = new TuningPanel({ reopen: (open) => inTurn(() => replace(open)), moved: showPlace });
let model, used, chosen, loading, usedContext, opening = Promise.resolve();

/** How many texts the model writes at once. */
const answers = () => Number(find('answers').value);
const slots = () => answers() > 1 ? { slots: answers() } : {};

/** Shows a model that can be loaded: what it is, and what it takes. */
async function offer(opened) {
  const given = await described(opened), { config } = given;
  chosen?.file.close();
  chosen = given;
  find('offer-name').textContent = titleOf(given);
  find('offer-about').textContent = given.about;
  const fitting = contexts.filter((n) => n < config.context);
  find('context').replaceChildren(...[...fitting, config.context].slice(0, contexts.length).map((n) => new Option(count(n), n, false, n === Math.min(usualContext, config.context))));
  find('keep-label').hidden = !Kept.possible || !!given.kept || !given.files;
  find('keep').checked = false;
  find('offer').hidden = false;
  await showMemory();
  find('load').focus();
}

const titleOf = ({ file, name }) => file.metadata.get('general.name') ?? name;

/** An open file with its configuration, and what the model is, in words. */
async function described(given) {
  const { file, files } = given, config = await configOf(file), weights = [...file.tensors.values()].reduce((sum, { shape }) => sum + shape.reduce((n, d) => n * d, 1), 0);
  const many = weights < 1e6 ? `${count(Math.round(weights / 1000))} thousand` : `${count(Math.round(weights / 1e6))} million`;
  const parts = [`${config.architecture}, ${config.layers} ${config.layers === 1 ? 'layer' : 'layers'}, ${many} weights`, ...files ? [`${size(files.reduce((sum, one) => sum + one.size, 0))} in files`] : []];
  return { ...given, config, about: parts.join('; ') };
}

async function showMemory() {
  const { weights, cache } = await memoryOf(chosen.file, { context: Number(find('context').value), ...slots() });
  find('offer-memory').textContent = `It takes ${size(weights + cache)} of memory: ${size(weights)} of weights and ${size(cache)} for the context${answers() > 1 ? `s of ${answers()} answers` : ''}.`;
}

/** Closes the offer. The file stays open if it is used. */
function withdraw() {
  chosen = undefined;
  find('offer').hidden = true;
}

/** Lets the visitor choose how many texts come at once, which a model with an adapter does not have. */
function allowSeveral(allowed) {
  find('answers').disabled = !allowed;
  find('answers-note').hidden = allowed;
}

/** Opens one model after the other. */
const inTurn = (next) => opening = opening.then(next, next);

/** Closes the model that talks, and has the one that a function opens in its place. */
async function replace(open) {
  allowSeveral(false);
  await talk.begin(undefined);
  model?.close();
  model = undefined;
  find('loading').hidden = false;
  find('stop-loading').hidden = true;
  find('progress').removeAttribute('value');
  find('progress-text').textContent = 'Compiling the model with an adapter';
  try {
    model = await open(progress);
    await talk.begin({ model, tokenizer: used.tokenizer, answers: 1 });
    find('answers').value = '1';
  } catch (error) {
    allowSeveral(true);
    panel.begin(undefined);
    find('model-about').textContent = 'No model is open: open it again.';
    throw error;
  } finally {
    find('loading').hidden = true;
    find('stop-loading').hidden = false;
  }
  void model.program.lost.then(lost);
}

/** Opens what was offered in place of the model there is, or the same once more. What is being loaded ends before. */
function load(given, context) {
  loading?.abort();
  const stop = loading = new AbortController();
  find('answers').disabled = true; // which would open the one before once more
  return inTurn(() => open(given, context, stop));
}

async function open(given, context, stop) {
  const same = given === used, many = answers();
  await talk.begin(undefined, same);
  panel.begin(undefined);
  model?.close();
  model = undefined;
  if (!same) used?.file.close();
  [used, usedContext] = [given, context];
  find('loading').hidden = false;
  find('where').hidden = true;
  find('progress').removeAttribute('value');
  find('progress-text').textContent = 'Compiling the model';
  find('model-name').textContent = titleOf(given);
  find('model-about').textContent = given.about;
  try {
    const options = { context, ...slots() }, { weights, cache } = await memoryOf(given.file, options);
    model = await openModel(given.file, { ...options, signal: stop.signal, onProgress: progress });
    find('memory').textContent = size(weights + cache);
    showPlace();
    await talk.begin({ model, tokenizer: given.tokenizer, answers: many }, same);
    panel.begin(given);
    say(`${titleOf(given)} is ready.`);
  } catch (error) {
    find('model-about').textContent = error.kind === 'abort' ? 'Loading was stopped. No model is open.' : 'No model is open.';
    if (error.kind !== 'abort') throw error;
  } finally {
    find('loading').hidden = true;
    if (loading === stop) { // no other is waiting
      allowSeveral(true);
      loading = undefined;
    }
  }
  void model?.program.lost.then(lost);
}

function progress(loaded, total) {
  find('progress').value = total ? loaded / total : 1;
  find('progress-text').textContent = `Reading weights: ${size(loaded)} of ${size(total)}`;
}

function showPlace() {
  const { device, fallbackReason } = model.program, gpu = device.name === 'webgpu';
  find('where').hidden = false;
  find('device-kind').textContent = gpu ? 'WebGPU' : 'CPU';
  find('device-kind').dataset.kind = gpu ? 'gpu' : 'cpu';
  find('device').textContent = gpu ? device.description : 'WebAssembly, in a worker';
  find('device-reason').hidden = !fallbackReason;
  find('device-reason').textContent = fallbackReason ? `${sentence(fallbackReason)} It runs on the CPU instead.` : '';
}

/** A device that is gone takes the model with it. */
async function lost({ kind, message }) {
  if (kind === 'closed') return;
  model = undefined;
  await talk.begin(undefined);
  panel.begin(undefined);
  find('model-about').textContent = 'No model is open.';
  notify(`The device that ran the model is gone, and the model with it: open it again. (${sentence(message).slice(0, -1)})`);
}

async function showKept() {
  const list = await Kept.list(), button = (name, text, click) => {
    const made = Object.assign(document.createElement('button'), { type: 'button', textContent: text });
    made.setAttribute('aria-label', `${text} ${name}`);
    made.addEventListener('click', () => click().catch(show));
    return made;
  };
  find('kept-part').hidden = list.length === 0;
  find('kept').replaceChildren(...list.map(({ name, bytes }) => {
    const item = document.createElement('li'), text = Object.assign(document.createElement('span'), { textContent: name }), buttons = Object.assign(document.createElement('div'), { className: 'buttons' });
    text.append(Object.assign(document.createElement('small'), { textContent: size(bytes) }));
    buttons.append(button(name, 'Open', async () => offer({ ...await Kept.open(name), kept: true })), button(name, 'Remove', async () => {
      await Kept.remove(name);
      await showKept();
    }));
    item.append(text, buttons);
    return item;
  }));
}

const show = (error) => notify(wordsOf(error));

for (const id of ['file', 'folder']) {
  on(id, 'change', async ({ target }) => {
    const files = [...target.files];
    target.value = '';
    if (files.length > 0) await offer(await openFiles(files));
  });
}
on('address-form', 'submit', async (event) => {
  event.preventDefault();
  await offer(await openAddress(find('address').value));
});
on('context', 'change', showMemory);
on('answers', 'change', async () => {
  if (chosen) await showMemory();
  if (!used) return;
  await load(used, usedContext).finally(() => {
    if (document.activeElement === document.body) find('answers').focus(); // which a control that is disabled loses
  });
});
on('cancel', 'click', () => {
  chosen?.file.close();
  withdraw();
});
on('load', 'click', async () => {
  const given = chosen, context = Number(find('context').value), keep = find('keep').checked;
  withdraw();
  await load(given, context);
  if (!keep || !model) return;
  await Kept.add(given.name, given.files);
  await showKept();
});
on('stop-loading', 'click', () => loading?.abort());
find('where-from').open = matchMedia('(min-width: 60.01em)').matches; // where there is room
const card = find('model');
for (const type of ['dragover', 'dragleave', 'drop']) on('model', type, () => card.classList.toggle('over', type === 'dragover'));
card.addEventListener('dragover', (event) => event.preventDefault());
card.addEventListener('drop', (event) => event.preventDefault());
on('model', 'drop', async ({ dataTransfer }) => offer(await openFiles(await dropped(dataTransfer))));

/** The tiny model goes on with a text by itself: there is something to see before the visitor has a model. */
async function begin() {
  await init({ lazy: true }); // a visitor who comes again has the plans
  showKept().catch(show); // without those the tiny model is there
  await load(await described(await openFiles([new File([await (await fetchOK('tiny.gguf')).blob()], 'tiny.gguf')])), tinyContext);
  talk.start();
}

await begin().catch((error) => {
  find('model-about').textContent = 'No model is open.';
  show(error);
});
document.documentElement.dataset.ready = 'true';
