// The hash that identifies plans.

/** The SHA-256 of bytes. */
export async function digestOf(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
}

/** The SHA-256 of bytes, in hexadecimal digits. */
export async function hashOf(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return Array.from(await digestOf(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
