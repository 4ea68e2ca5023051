// Messages from a program to its page.

/** @param {{type: string}} message */
export const report = (message) => globalThis.postMessage(message);
