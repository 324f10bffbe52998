const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const OPEN_OBJECT = 0x7b;

/** Whether a JSON text has more objects and lists than this. It is not checked otherwise. */
export function hasMoreParts(json: string, max: number): boolean {
  // Each has two brackets.
  if (json.length <= 2 * max) return false;
  let count = 0;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = findStringEnd(json, at);
    else if ((code === OPEN_LIST || code === OPEN_OBJECT) && ++count > max) return true;
  }
  return false;
}

/** Where the string ends that begins at `from`: long ones are passed over in one go. */
function findStringEnd(json: string, from: number): number {
  for (let at = json.indexOf('"', from + 1); at >= 0; at = json.indexOf('"', at + 1)) {
    let slashes = 0;
    while (json.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return at;
  }
  return json.length;
}
