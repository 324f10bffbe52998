/**
 * The value that names lead to, one after the other. Undefined where one of them is missing.
 *
 * @param {unknown} value
 * @param {...string} names
 * @returns {unknown}
 */
export function pick(value, ...names) {
  let found = value;
  for (const name of names) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, name))
      return undefined;
    found = /** @type {Record<string, unknown>} */ (found)[name];
  }
  return found;
}

/**
 * The same, where it is a string.
 *
 * @param {unknown} value
 * @param {...string} names
 * @returns {string | undefined}
 */
export function pickText(value, ...names) {
  const found = pick(value, ...names);
  return typeof found === "string" ? found : undefined;
}

/**
 * The same, where it is a number that can be an id.
 *
 * @param {unknown} value
 * @param {...string} names
 * @returns {number | undefined}
 */
export function pickNumber(value, ...names) {
  const found = pick(value, ...names);
  return typeof found === "number" && Number.isSafeInteger(found) ? found : undefined;
}

/**
 * @param {unknown} value
 * @returns {readonly unknown[]}
 */
export function toList(value) {
  return Array.isArray(value) ? value : [];
}

/**
 * @param {unknown} error
 * @returns {string}
 */
export function errorText(error) {
  return error instanceof Error ? error.message : String(error);
}
