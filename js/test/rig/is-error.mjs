// A check of errors, for assert.rejects and assert.throws.

import assert from 'node:assert/strict';
import { RlxError } from '../../dist/runtime.js';

/** Returns the check that an error is an RlxError of a kind, whose message matches text. */
export const isError = (kind, text = /./) => (error) => {
  assert.ok(error instanceof RlxError, `not an RlxError: ${error.stack}`);
  assert.equal(error.kind, kind, error.message);
  assert.match(error.message, text);
  return true;
};
