/** Whether two values are the same as JSON. False if one of them cannot be written. */
export function isSameJson(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  try {
    return JSON.stringify(one) === JSON.stringify(other);
  } catch {
    return false;
  }
}
