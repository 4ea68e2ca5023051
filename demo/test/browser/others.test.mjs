// The demo in Firefox and in WebKit: it reads digits to 94 %, on the CPU and, in Firefox, on WebGPU,
// and learns to write on the CPU; and the playground checks types.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { missing, visit } from '../../../js/test/rig/browsers.mjs';
import { quickLavapipe } from '../../../js/test/rig/dawn.mjs';
import { strictCSP } from '../../../js/test/rig/serve.mjs';
import { demoMounts } from '../../../js/serve.mjs';
import { randomModel } from './random-model.mjs';

const { '/': demo, '/rlx': dist } = demoMounts;

/** A module that opens a page in a frame, trains it as a visitor would until it has learned enough, and pauses. */
const visiting = (path, { enough, report }) => `
export default async () => {
  const frame = document.body.appendChild(Object.assign(document.createElement('iframe'), { src: '/demo/${path}', width: 1200, height: 800 }));
  const find = (id) => frame.contentDocument.getElementById(id), text = (id) => find(id).textContent;
  const until = async (done) => { while (!done()) await new Promise((resolve) => setTimeout(resolve, 100)); };
  await until(() => frame.contentDocument?.documentElement?.dataset.ready && !find('train').disabled);
  if (text('train') === 'Train') find('train').click(); // it begins by itself
  let best; // it goes up and down
  await until(() => ${enough} || !find('problem').hidden);
  find('train').click();
  await until(() => text('train') === 'Train');
  await new Promise((resolve) => frame.contentWindow.requestAnimationFrame(() => setTimeout(resolve))); // curves are drawn with the screen
  return {
    best, kind: text('device-kind'), reason: text('device-reason'),
    curve: find('loss-chart').getAttribute('aria-label'), problem: find('problem').hidden ? '' : text('problem'), ${report},
  };
};
`;

/** Here lavapipe runs each kernel often enough that LLVM's optimisation pays, though not code for long vectors. */
const shortVectors = { LP_NATIVE_VECTOR_WIDTH: quickLavapipe.LP_NATIVE_VECTOR_WIDTH };

/** Runs such a module, and gives what it reports when nothing went wrong. */
async function train(t, name, module, webgpu) {
  const csp = strictCSP.replace("frame-ancestors 'none'", "frame-ancestors 'self'; frame-src 'self'");
  const { value, problems } = await visit(t, name, { module, mounts: { '/demo': demo, '/demo/rlx': dist, '/rlx': dist }, csp, webgpu, env: shortVectors, seconds: 240 });
  assert.equal(value.problem, '');
  assert.deepEqual(problems, []);
  assert.equal(value.kind, webgpu ? 'WebGPU' : 'CPU');
  assert.match(value.reason, webgpu ? /^$/ : /WebGPU is not here/);
  assert.match(value.curve, /^Loss by step: \d\.\d+ at step \d+/);
  return value;
}

const digits = visiting('digits.html', {
  enough: "(best = Math.max(best ?? 0, parseFloat(text('accuracy')))) >= 94",
  report: "verdict: text('verdict')",
});
const gpt = visiting('gpt.html', {
  enough: "(best = Math.min(best ?? 9, parseFloat(text('held')))) < 3.4",
  report: "sample: text('sample'), written: text('sample-text')",
});

for (const [name, webgpu] of [['firefox', false], ['firefox', true], ['webkit', false]]) {
  test(`${name} trains the demo's network to 94 %${webgpu ? ' on WebGPU' : ''}`, { skip: missing(name) }, async (t) => {
    const { best, verdict } = await train(t, name, digits, webgpu);
    assert.ok(best >= 94, `${best} %`);
    assert.match(verdict, /^It reads \d\. The digit is \d\./);
  });
}

for (const name of ['firefox', 'webkit']) {
  test(`${name} trains the demo's language model`, { skip: missing(name) }, async (t) => {
    const { best, sample, written } = await train(t, name, gpt, false);
    assert.ok(best < 3.4, `a loss of ${best} on the text held out`);
    assert.ok(sample.length >= 320, sample);
    assert.match(written, /^after [\d,]+ steps$/);
  });
}

/** A module that writes programs in the playground: one with a type error, and one in TypeScript that throws. */
const playground = `
export default async () => {
  const frame = document.body.appendChild(Object.assign(document.createElement('iframe'), { src: '/demo/playground.html', width: 1200, height: 800 }));
  const find = (id) => frame.contentDocument.getElementById(id), text = (id) => find(id).textContent;
  const until = async (done) => { while (!done()) await new Promise((resolve) => setTimeout(resolve, 100)); };
  const write = (source) => {
    find('source').value = source;
    find('source').dispatchEvent(new Event('input'));
  };
  await until(() => frame.contentDocument?.documentElement?.dataset.ready && text('state').startsWith('Ended'));
  write("const a: number = 'b';");
  await until(() => find('problem-list').children.length === 1);
  const problem = text('problem-list');
  write('interface A { x: number }\\n\\nconst a = { x: 1 } as A;\\nconsole.log(a.x);\\nthrow new Error("typed" as string);');
  find('run').click();
  await until(() => text('state').startsWith('Failed'));
  return { problem, log: text('log'), failure: text('failure') };
};
`;

for (const name of ['firefox', 'webkit']) {
  test(`${name} checks types in the playground, and errors have their lines`, { skip: missing(name) }, async (t) => {
    const csp = strictCSP.replace("frame-ancestors 'none'", "frame-ancestors 'self'; frame-src 'self'").replace("script-src 'self'", "script-src 'self' blob:");
    const { value, problems } = await visit(t, name, { module: playground, mounts: { '/demo': demo, '/demo/rlx': dist, '/rlx': dist }, csp, seconds: 240 });
    assert.deepEqual(value, { problem: "Line 1: Type 'string' is not assignable to type 'number'.", log: '1\n', failure: 'Line 5: Typed.' });
    assert.deepEqual(problems, []);
  });
}

/** A module that opens a model of a file in the page of chat, and gets two answers at once, as JSON. */
const chat = `
export default async () => {
  const frame = document.body.appendChild(Object.assign(document.createElement('iframe'), { src: '/demo/chat.html', width: 1200, height: 800 }));
  const find = (id) => frame.contentDocument.getElementById(id), text = (id) => find(id).textContent;
  const until = async (done) => { while (!done()) await new Promise((resolve) => setTimeout(resolve, 100)); };
  const changed = (id) => find(id).dispatchEvent(new frame.contentWindow.Event('change'));
  await until(() => frame.contentDocument?.documentElement?.dataset.ready && text('log').length > 60);
  const transfer = new frame.contentWindow.DataTransfer();
  transfer.items.add(new frame.contentWindow.File([await (await fetch('/random.gguf')).arrayBuffer()], 'random.gguf'));
  find('file').files = transfer.files;
  changed('file');
  await until(() => !find('offer').hidden);
  find('load').click();
  await until(() => text('model-name') === 'Random' && !find('send').disabled);
  const memory = text('memory');
  find('answers').value = '2';
  changed('answers');
  await until(() => text('memory') !== memory && !find('send').disabled);
  find('as-json').click();
  find('schema').value = '{ "enum": ["sunny", "rainy"] }';
  find('message').value = 'How is it?';
  find('send').click();
  await until(() => find('log').querySelectorAll('.written').length === 2 && text('send') === 'Send');
  const answers = [...find('log').querySelectorAll('.written')].map(({ textContent }) => JSON.parse(textContent));
  return { answers, notice: find('notice').hidden ? '' : text('notice-text') };
};
`;

for (const name of ['firefox', 'webkit']) {
  test(`${name} opens a model in the page of chat, which answers as JSON, twice at once`, { skip: missing(name) }, async (t) => {
    const csp = strictCSP.replace("frame-ancestors 'none'", "frame-ancestors 'self'; frame-src 'self'");
    const mounts = { '/demo': demo, '/demo/rlx': dist, '/rlx': dist, '/random.gguf': { body: Buffer.from(randomModel()), type: 'application/octet-stream' } };
    const { value, problems } = await visit(t, name, { module: chat, mounts, csp, seconds: 240 });
    assert.equal(value.notice, '');
    assert.equal(value.answers.length, 2);
    for (const answer of value.answers) assert.ok(['sunny', 'rainy'].includes(answer), answer);
    assert.deepEqual(problems, []);
  });
}
