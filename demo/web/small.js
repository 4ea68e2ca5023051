// The least that trains: a plan compiled ahead of time, and its runtime.

import { openProgram, Trainer } from './rlx/runtime.js';
import { loadDigits, testCount } from './digit-data.js';
import { highlight } from './highlight.js';
import { fetchOK, find, say, wordsOf } from './page.js';

async function train() {
  const [plan, digits] = await Promise.all([fetchOK('assets/digits-mlp.rlxp').then((response) => response.arrayBuffer()), loadDigits()]);
  const program = await openProgram(plan, { worker: true });
  try {
    await program.run('init', { seed: 1 });
    const { loss, seconds, steps } = await new Trainer(program).run({
      steps: 600, batches: digits.batches(), inputs: (step) => ({ lr: step < 450 ? 2e-3 : 4e-4 }),
      onProgress: ({ step, losses }) => { find('result').textContent = `step ${step}, loss ${losses.at(-1).toFixed(4)}`; },
    });
    const { reading } = await program.run('eval', digits.test, { read: ['correct'] });
    const right = (await reading).values.correct[0] / testCount * 100;
    find('result').textContent = `${right.toFixed(2)} % of the test digits right after ${steps} steps in ${seconds.toFixed(1)} s, loss ${loss.toFixed(4)}, on ${program.device.description}`;
    say(find('result').textContent);
  } finally {
    program.close();
  }
}

find('train').addEventListener('click', async () => {
  find('train').disabled = true;
  find('problem').hidden = true;
  find('result').textContent = '';
  try {
    await train();
  } catch (error) {
    find('problem').hidden = false;
    find('problem').textContent = wordsOf(error);
  } finally {
    find('train').disabled = false;
  }
});

highlight(find('code'), await fetch('small.js').then((response) => response.text(), () => ''), 'js');
