const NAME_BYTES = 16;

/** A random name for a stream: any client that knows it may resume and abort the stream. */
export function makeStreamName(): string {
  return `s_${makeRandomHex(NAME_BYTES)}`;
}

export function makeRandomHex(bytes: number): string {
  // Pages that did not come over HTTPS have no `randomUUID`.
  const random = globalThis.crypto.getRandomValues(new Uint8Array(bytes));
  return Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
