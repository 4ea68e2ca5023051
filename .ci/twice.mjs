// Runs node's tests, and files in which a test fails a second time, one file after the other:
//
//   node .ci/twice.mjs FLAG... FILE...
//
// Browsers and graphics drivers in software end for reasons of the machine now and then: where memory is short, or a
// processor is given to another machine for a second. What fails twice fails; what passes the second time is named
// at the end.

import { spawn } from 'node:child_process';
import { relative, resolve } from 'node:path';

const args = process.argv.slice(2), files = args.filter((arg) => !arg.startsWith('-')), flags = args.filter((arg) => arg.startsWith('-'));

/** Runs files, and gives the exit status and the places of the tests that failed. */
function run(these) {
  return new Promise((done) => {
    const child = spawn(process.execPath, ['--test', '--test-reporter=tap', ...flags, ...these], { stdio: ['inherit', 'pipe', 'inherit'] });
    let failing = false, rest = '';
    const places = new Set();
    child.stdout.on('data', (text) => {
      process.stdout.write(text);
      const lines = (rest + text).split('\n');
      rest = lines.pop();
      for (const line of lines) {
        if (/^\s*(not )?ok /.test(line)) failing = /^\s*not ok /.test(line);
        const [, place] = line.match(/^\s+location: '(.*):\d+:\d+'/) ?? [];
        if (failing && place) places.add(place);
      }
    });
    child.on('close', (status) => done({ status: status ?? 1, places: [...places] }));
  });
}

const { status, places } = await run(files), again = files.filter((file) => places.includes(resolve(file)));
if (status === 0 || again.length < places.length || again.length === 0) process.exit(status);
console.log(`\nA second time: ${again.join(' ')}`);
const second = await run(['--test-concurrency=1', ...again]);
if (second.status === 0) console.log(`\nPassed the second time only: ${places.map((place) => relative('.', place)).join(' ')}`);
process.exit(second.status);
