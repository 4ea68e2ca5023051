// Trained networks that the browser keeps from one visit to the next, in IndexedDB. A browser without it, or without room, keeps none.

const store = 'networks';

/** For how many milliseconds a network is waited for: a browser whose data is damaged may never answer. */
const patience = 2000;

const done = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

let opened, last = Promise.resolve();

function open() {
  opened ??= (async () => {
    const request = indexedDB.open('rlx-networks', 1);
    request.onupgradeneeded = () => request.result.createObjectStore(store);
    const database = await done(request);
    database.onversionchange = database.onclose = () => {
      database.close();
      opened = undefined;
    };
    return database;
  })();
  opened.catch(() => { opened = undefined; });
  return opened;
}

/** Does one thing with the store after those before it, which may have failed. */
const inTurn = (mode, act) => last = last.catch(() => {}).then(async () => done(act((await open()).transaction(store, mode).objectStore(store))));

/**
 * A network that was kept under a key, or undefined.
 * @returns {Promise<{tensors: Record<string, import('@rlx-go/rlx/runtime').HostTensor>, curves: Record<string, object>} | undefined>}
 */
export const recall = (key) => Promise.race([
  inTurn('readonly', (all) => all.get(key)),
  new Promise((resolve) => setTimeout(resolve, patience)),
]).catch(() => undefined);

/** Keeps a network under a key, in place of the one before. */
export const retain = (key, { tensors, curves }) => {
  const plain = Object.fromEntries(Object.entries(tensors).map(([name, { dtype, shape, data }]) => [name, { dtype, shape: [...shape], data }]));
  return inTurn('readwrite', (all) => all.put({ tensors: plain, curves }, key)).catch(() => {});
};

/** Keeps a network no longer. */
export const forget = (key) => inTurn('readwrite', (all) => all.delete(key)).catch(() => {});
