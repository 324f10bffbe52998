/** The parts of a `data:` URL in base64; nothing for any other address. */
export function parseDataUrl(url: string): { mimeType: string; data: string } | undefined {
  const found = /^data:([^;,]+)(?:;[^;,]+)*;base64,([A-Za-z0-9+/=\s]*)$/.exec(url);
  return found?.[1] === undefined || found[2] === undefined
    ? undefined
    : { mimeType: found[1], data: found[2] };
}
