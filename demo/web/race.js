// GPU against CPU: the same steps on both, one after the other.

import { DigitEngine, open } from './digit-engine.js';
import { find } from './page.js';

const steps = 100, mostSeconds = 8;

/**
 * Trains from the start on one device, and reports its progress.
 * @param {{model: string, where: 'gpu' | 'cpu', digits: object, rate: number, onProgress: (p: Lap) => void}} options
 * @typedef {{steps: number, perSecond: number, loss: number, device: string}} Lap
 * @returns {Promise<Lap & {losses: number[]}>}
 */
async function lap({ model, where, digits, rate, onProgress }) {
  const { program } = await open(model, where), engine = new DigitEngine(program, model, digits), losses = [];
  try {
    engine.rate = rate;
    await engine.reset(1);
    await engine.train({ steps: 2, onLosses: (_, some) => losses.push(...some) }); // warm-up
    const begun = performance.now();
    const now = () => ({ steps: losses.length, perSecond: (losses.length - 2) / (performance.now() - begun) * 1000, loss: losses.at(-1), device: program.device.description });
    await engine.train({
      steps: steps - 2,
      onLosses(_, some) {
        losses.push(...some);
        onProgress(now());
        if (performance.now() - begun > mostSeconds * 1000) engine.pause();
      },
    });
    return { ...now(), losses };
  } finally {
    engine.close();
  }
}

/** Shows how far a device has come; its bar is as long as its speed relative to the faster one's. */
function show(laps) {
  const fastest = Math.max(...Object.values(laps).map(({ perSecond }) => perSecond));
  for (const [where, { steps: done, perSecond, loss, device }] of Object.entries(laps)) {
    const cells = find(`race-${where}`).querySelectorAll('td');
    [done, perSecond.toFixed(1), loss.toFixed(4)].forEach((text, i) => { cells[i].textContent = text; });
    cells[1].style.setProperty('--part', `${perSecond / fastest * 100}%`);
    find(`race-${where}`).title = device;
  }
}

/** How far losses are apart, in words: below which power of ten. */
function apartOf(most) {
  const digits = Math.floor(-Math.log10(most));
  return most === 0 ? 'are the same' : digits > 0 ? `differ by less than ${(10 ** -digits).toFixed(digits)}` : `differ by ${most.toFixed(1)}`;
}

/** What came out, in a sentence. */
function verdict({ gpu, cpu }) {
  const both = Math.min(gpu.losses.length, cpu.losses.length, 50);
  const apart = Math.max(...gpu.losses.slice(0, both).map((loss, i) => Math.abs(loss - cpu.losses[i])));
  const ratio = gpu.perSecond / cpu.perSecond;
  const faster = ratio >= 1 ? `the GPU is ${ratio.toFixed(1)} times as fast` : `the CPU is ${(1 / ratio).toFixed(1)} times as fast`;
  return `Here ${faster}. Over ${both} steps the losses ${apartOf(apart)}.`;
}

/** Says what would race, or why nothing can: `reason` is why there is no GPU, in a sentence, undefined where there is one. */
export function prepareRace(reason) {
  find('race-note').textContent = reason === undefined
    ? 'The same training on the GPU, then on the CPU: the same losses, at different speeds.'
    : `There is no GPU to race here. ${reason} In a browser with a GPU both run the same steps.`;
  find('race-buttons').hidden = reason !== undefined;
  if (reason !== undefined) find('race-table').hidden = true;
}

/**
 * Runs both and shows them. A sentence names a device that cannot run.
 * @param {{model: string, digits: object, rate: number}} options
 */
export async function race(options) {
  const laps = {};
  for (const cell of find('race-table').querySelectorAll('td')) cell.textContent = '…';
  find('race-table').hidden = false;
  find('race-text').textContent = 'Running…';
  for (const where of ['gpu', 'cpu']) {
    try {
      laps[where] = await lap({ ...options, where, onProgress: (progress) => show({ ...laps, [where]: progress }) });
      show(laps);
    } catch (error) {
      find('race-table').hidden = true;
      find('race-text').textContent = `The ${where === 'gpu' ? 'GPU' : 'CPU'} cannot run here: ${error.message}.`;
      return;
    }
  }
  find('race-text').textContent = verdict(laps);
}
