/**
 * The address that a text is, or nothing. In place of `URL.canParse`, which in Node refuses
 * letters such as "é" once it was called often enough to be compiled.
 */
export function toUrl(text: string, base?: string | URL): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}
