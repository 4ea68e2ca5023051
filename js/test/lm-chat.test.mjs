// Chat templates: the texts of jinja2 in the environment of the transformers library, which the Go package stores.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { chatTemplate } from '../dist/lm.js';

const folder = new URL('../../ir/format/chat/testdata/', import.meta.url);
const text = (name) => readFileSync(new URL(name, folder), 'utf8');
const { common, conversations, templates, values, snippets } = JSON.parse(text('rendered.json'));
const now = new Date(2026, 2, 7, 9, 5, 2);

/** What a template makes of variables: its text, or the kind of its error. */
function outcome(source, { messages = [], add_generation_prompt: addGenerationPrompt = false, ...variables }) {
  try {
    return { text: chatTemplate(source).render(messages, { ...variables, addGenerationPrompt, now }) };
  } catch (error) {
    assert.equal(error.name, 'RlxError', error.stack);
    assert.match(error.message, /^chat template, line \d+: /);
    return { [{ rule: 'raised', syntax: 'syntax', attr: 'error' }[error.kind] ?? error.kind]: error.message.replace(/^.*?: /, '') };
  }
}

function check(source, variables, want) {
  const got = outcome(source, variables);
  if (want.text !== undefined || want.raised !== undefined) assert.deepEqual(got, want, source);
  else assert.deepEqual(Object.keys(got), Object.keys(want), `${source}: ${JSON.stringify(got)}, not ${JSON.stringify(want)}`);
}

describe('conversations by the templates of models', () => {
  assert.ok(Object.keys(templates).length >= 10);
  for (const [name, wants] of Object.entries(templates)) {
    test(name, () => wants.forEach((want, i) => check(text(name), { ...common, ...conversations[i] }, want)));
  }
});

test('expressions and statements', () => {
  assert.ok(snippets.length > 50);
  for (const [source, want] of snippets) check(source, values, want);
});
