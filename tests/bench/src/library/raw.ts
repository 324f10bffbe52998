/** Deltas that arrive together, as a read from a socket brings them. */
export const PARTS_A_READ = 32;

/** The next read of a socket: the event loop gets its turn. */
export function nextRead(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Arguments of a call that writes a file, about `bytes` long. */
export function formatArguments(bytes: number): string {
  const line = 'const answer = "forty-two"; // a line of code\n';
  const encoded = JSON.stringify(line).length - 2;
  return JSON.stringify({ path: "src/a.ts", content: line.repeat(Math.ceil(bytes / encoded)) });
}
