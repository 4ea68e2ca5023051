// The pages as they are built: in each the same top, and addresses that work in any folder of a server.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pageOf } from '../pages/layout.mjs';

const sources = join(import.meta.dirname, '../pages'), web = join(import.meta.dirname, '../web');
const names = readdirSync(sources).filter((name) => name.endsWith('.html'));
const built = Object.fromEntries(names.map((name) => [name, pageOf(name, readFileSync(join(sources, name), 'utf8'))]));

test('every page links to the others, marks itself, and lets the keyboard skip the links', () => {
  assert.ok(names.length > 5);
  for (const [name, html] of Object.entries(built)) {
    assert.equal(html.match(/ aria-current="page"/g)?.length ?? 0, name === 'small.html' ? 0 : 1, name);
    assert.match(html, /<body>\n<a class="skip" href="#main">[^]*<main id="main">/, name);
    for (const once of ['<h1', '<main', '<noscript><div', '<title>', 'id="status"', 'id="notice"']) assert.equal(html.split(once).length, 2, `${name}: ${once}`);
    const ids = [...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
    assert.equal(new Set(ids).size, ids.length, `${name}: an id is there twice`);
  }
  assert.throws(() => pageOf('other.html', '<p>text</p>'), /other\.html/);
});

test('what a page names is there, and no address begins at the root of the server', () => {
  const made = /^(docs|rlx|assets|bench)\//;
  for (const [name, html] of Object.entries(built)) {
    for (const [, address] of html.matchAll(/ (?:href|src)="([^"#]+)/g)) {
      if (/^https:/.test(address)) continue;
      const [path] = address.split('#');
      assert.ok(path === './' || made.test(path) || built[path] || existsSync(join(web, path)), `${name} names ${address}`);
    }
  }
});

test('no script names another from the root of the server', () => {
  const scripts = readdirSync(web, { recursive: true }).filter((name) => name.endsWith('.js') && !/^bench\//.test(name));
  assert.ok(scripts.length > 50, `${scripts.length} scripts`);
  for (const name of scripts) {
    for (const [, path] of readFileSync(join(web, name), 'utf8').matchAll(/(?:from|import|import\(|Worker\(|URL\(|fetch\(|fetchOK\()\s*['"`]([^'"`]+)/g)) {
      assert.doesNotMatch(path, /^\//, name);
    }
  }
});
