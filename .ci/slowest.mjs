// Prints what `go test -json` reports as `go test` does, and then the ten packages and the ten tests that took longest:
//
//   go test -json ./... | node .ci/slowest.mjs

import { createInterface } from 'node:readline';

const outputs = new Map(), failed = new Set(), packages = [], tests = [];

for await (const line of createInterface({ input: process.stdin })) {
  if (!line.startsWith('{')) { // of the go command itself
    console.log(line);
    continue;
  }
  const { Action: action, Package: name, Test: test, Elapsed: seconds, Output: text, FailedBuild: unbuilt } = JSON.parse(line);
  if (action === 'build-output') process.stdout.write(text);
  if (action === 'output') {
    // Lines wait for the result of their package. Those without a test are its result, or what it writes itself.
    if (!outputs.has(name)) outputs.set(name, []);
    outputs.get(name).push({ test, text });
  }
  if (action !== 'pass' && action !== 'fail' && action !== 'skip') continue;
  if (test) {
    if (action === 'fail') failed.add(`${name} ${test}`);
    if (!test.includes('/')) tests.push({ seconds, what: `${test} in ${name}` });
    continue;
  }
  packages.push({ seconds, what: name });
  const all = action === 'fail' && !unbuilt;
  for (const { test: of, text: one } of outputs.get(name) ?? []) {
    const shown = of ? failed.has(`${name} ${of}`) && !one.startsWith('=== ') : all || /^(ok|\?|FAIL)\s/.test(one);
    if (shown) process.stdout.write(one);
  }
  outputs.delete(name);
}

for (const [what, all] of [['packages', packages], ['tests', tests]]) {
  const slowest = all.sort((a, b) => b.seconds - a.seconds).slice(0, 10).map(({ seconds, what: one }) => `${seconds.toFixed(1).padStart(8)} s  ${one}`);
  console.log(`The ten ${what} that took longest:\n${slowest.join('\n')}`);
}
