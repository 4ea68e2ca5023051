/** Rejects a promise that takes longer than some milliseconds, with the given error. */
export async function within<T>(ms: number, error: Error, promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout>;
  const late = new Promise<never>((_, reject) => { timer = setTimeout(() => reject(error), ms); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
