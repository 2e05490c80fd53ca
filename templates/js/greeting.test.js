import assert from 'node:assert/strict';
import { test } from 'node:test';
import { greeting } from './greeting.js';

test('names are greeted', () => {
  assert.deepEqual([...greeting('Ada', 'POST', '/hello')], ['Hello, Ada!\n', 'You sent POST to /hello.\n']);
});
