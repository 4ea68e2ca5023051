// Answers as JSON: what the visitor asks for, and the grammar that holds the model to it.

import { find, on } from '../page.js';

/** A schema to begin with. */
const sample = `{
  "type": "object",
  "properties": {
    "answer": { "type": "string" },
    "topic": { "enum": ["science", "history", "daily life"] }
  },
  "required": ["answer", "topic"]
}`;

/** The switch, and the field of the schema. */
export class JSONForm {
  /** The texts of a tokenizer's tokens, which take a while to find. */
  #vocabularies = new WeakMap();

  constructor() {
    find('schema').value = sample;
    on('as-json', 'change', () => this.#show());
  }

  /** Whether the model answers at all. */
  set possible(possible) {
    find('json-label').hidden = !possible;
    this.#show();
  }

  get chosen() { return find('as-json').checked && !find('json-label').hidden; }

  get #schema() { return find('schema').value.trim(); }

  #show() { find('json-part').hidden = !this.chosen; }

  /** What the model reads for a message: it knows what to fill in. */
  message(text) {
    if (!this.chosen) return text;
    return this.#schema ? `${text}\n\nAnswer with JSON that fits this JSON schema:\n${this.#schema}` : `${text}\n\nAnswer with a JSON object.`;
  }

  /** The grammar of the answers; undefined for any text. Its code is loaded with the first. */
  async grammar(tokenizer) {
    if (!this.chosen) return undefined;
    const { Vocabulary } = await import('../rlx/grammar.js');
    let vocabulary = this.#vocabularies.get(tokenizer);
    if (!vocabulary) this.#vocabularies.set(tokenizer, vocabulary = new Vocabulary(tokenizer));
    return vocabulary.json(this.#schema || undefined);
  }
}
