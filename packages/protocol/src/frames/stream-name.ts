const NAME_BYTES = 16;

/** A random name for a stream: any client that knows it may resume and abort the stream. */
export function makeStreamName(): string {
  // Pages that did not come over HTTPS have no `randomUUID`.
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(NAME_BYTES));
  return `s_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
