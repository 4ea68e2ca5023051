// Writes files of tensors whose elements are not in memory together.

import type { StoredData } from '../values/dtype.js';
import { need, RlxError } from '../values/errors.js';
import { checkData, headOf } from './file.js';

/** A tensor to write. */
export interface TensorEntry {
  name: string;
  dtype: string;
  shape: readonly number[];
  /** The elements. It is called when those of the tensors before are written. */
  read(): StoredData | Promise<StoredData>;
}

/**
 * Writes tensors in the order given, and metadata, and closes the stream, such as that of `createWritable` of a file of the
 * origin's private file system: it takes the memory of one of them. Errors are those of `encodeSafetensors`, of kind `name` for
 * a name that is there twice, `closed` for a stream that is, and those of `read` and of the stream, which is then aborted.
 */
export async function writeSafetensors(to: WritableStream<Uint8Array<ArrayBuffer>>, entries: readonly TensorEntry[], metadata?: Record<string, string>): Promise<void> {
  need(typeof to?.getWriter === 'function' && !to.locked, 'attr', 'writeSafetensors: the first argument', 'a WritableStream without a writer', to);
  need(Array.isArray(entries), 'attr', 'writeSafetensors: the tensors', 'a list of { name, dtype, shape, read }', entries);
  const writer = to.getWriter();
  writer.closed.catch(() => {}); // errors are those of the writes
  try {
    // One that is closed has to be asked for, as Node's then fails by an assertion of its own.
    const closed = await Promise.race([writer.closed.then(() => true), new Promise<boolean>((open) => { setTimeout(open, 0, false); })]);
    if (closed) throw new RlxError('closed', 'writeSafetensors: the stream is closed');
    const head = headOf(entries, metadata);
    for (const { name, read } of entries) need(typeof read === 'function', 'attr', `writeSafetensors: read of ${name}`, 'a function', read);
    await writer.write(head);
    for (const entry of entries) {
      const data = await entry.read();
      checkData(entry, data);
      await writer.write(new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength));
    }
    await writer.close();
  } catch (reason) {
    await writer.abort(reason).catch(() => {}); // of which the reason is known
    throw reason;
  } finally {
    writer.releaseLock();
  }
}
