// Minified code is in lines that can be read where an error points to one, and means the same.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { test } from 'node:test';
import { breakLines } from '../lines.mjs';

const dist = new URL('../dist/', import.meta.url);
const map = { version: 3, sources: ['a.ts'], names: [], mappings: 'AAAA' };
const broken = (code) => breakLines(code, map).code;

test('a line ends where a semicolon ends a statement, and what follows begins with a word', () => {
  assert.equal(broken('let a=1;let b=2;f(a);class C{m(){return 1;g()}}'), 'let a=1\nlet b=2\nf(a)\nclass C{m(){return 1\ng()}}');
  assert.equal(broken('switch(a){case 1:f();break;default:g();h()}'), 'switch(a){case 1:f()\nbreak;default:g()\nh()}');
});

test('a line does not end where that changes the meaning', () => {
  for (const code of [
    'a();(b)', 'a();[b]', 'a();`b`', 'a();/b/', 'a();+b', 'a();-b', // the next begins with what could go on
    'while(f());g()', 'for(;;);g()', 'if(a);else;g()', 'for(let x in y);g()', 'l:;g()', 'if(a)while(f());g()', // the semicolon is the body
  ]) assert.equal(broken(code), code);
});

test('long classes have their members in lines of their own', () => {
  const body = 'a'.repeat(800);
  assert.equal(broken(`class C{${body}(){}m(){}n(){}}`), `class C{${body}(){}\nm(){}n(){}}`);
});

test('long arrays are broken between elements', () => {
  const element = '1'.repeat(800);
  assert.equal(broken(`const a=[${element},2,,3],b=[4]`), `const a=[${element},\n2,,3],b=[4]`);
});

test('long objects are broken between members', () => {
  const text = '1'.repeat(800);
  assert.equal(broken(`f({a:${text},b,...c})`), `f({a:${text},\nb,...c})`);
});

test('long lists of exports are broken between names', () => {
  const name = 'a'.repeat(800);
  assert.equal(broken(`const ${name}=1,b=2;export{${name},b}`), `const ${name}=1,b=2\nexport{${name},\nb}`);
});

test('the lines of the package are short', () => {
  for (const name of readdirSync(dist).filter((file) => file.endsWith('.js'))) {
    const longest = Math.max(...readFileSync(new URL(name, dist), 'utf8').split('\n').map((line) => line.length));
    assert.ok(longest < 1200, `${name} has a line of ${longest} characters`);
  }
});

test('source maps say where the code is from', () => {
  for (const name of readdirSync(dist).filter((file) => file.endsWith('.js.map') && !file.startsWith('wasm_exec'))) {
    const payload = JSON.parse(readFileSync(new URL(name, dist), 'utf8')), found = new SourceMap(payload);
    const lines = readFileSync(new URL(name.slice(0, -4), dist), 'utf8').split('\n');
    let right = 0, all = 0;
    for (const [i, line] of lines.entries()) {
      // A message, with its quotes, is the same in the code as in the source. A constant is mapped
      // to its use.
      for (const { 0: text, index } of line.matchAll(/`[a-z][a-z ]{12,}`/g)) {
        const { originalSource, originalLine } = found.findEntry(i, index);
        all++;
        if (payload.sourcesContent[payload.sources.indexOf(originalSource)].split('\n')[originalLine].includes(text.slice(1, -1))) right++;
      }
    }
    const has = payload.sourcesContent.some((text) => /['`][a-z][a-z ]{12,}['`]/.test(text));
    assert.ok(all > 0 || lines.length < 60 || !has, `${name} has no messages`);
    assert.ok(right >= 0.8 * all, `${name}: ${right} of ${all} messages are where the map says`);
  }
});

test('Node shows the source of an error where it is asked to', () => {
  const program = `const { decodePlan } = await import(${JSON.stringify(new URL('runtime.js', dist).href)}); decodePlan(new Uint8Array(3));`;
  assert.throws(() => execFileSync(process.execPath, ['--enable-source-maps', '--input-type=module', '-e', program], { stdio: 'pipe' }), ({ stderr }) => {
    assert.match(String(stderr), /js\/src\/plan\/\w+\.ts:\d+/);
    assert.match(String(stderr), /RlxError: /);
    return true;
  });
});
