/** `before` where `now` has the same fields, or the same items, with the same values: views compare by identity. */
export function keepEqual<T extends object>(before: T | undefined, now: T): T {
  if (!before) return now;
  return isEqual(before, now) ? before : now;
}

function isEqual(before: object, now: object): boolean {
  if (Array.isArray(before) || Array.isArray(now)) {
    return Array.isArray(before) && Array.isArray(now) && isSameList(before, now);
  }
  const names = Object.keys(now);
  if (names.length !== Object.keys(before).length) return false;
  return names.every(
    (name) =>
      Object.hasOwn(before, name) && Object.is(Reflect.get(before, name), Reflect.get(now, name)),
  );
}

/** From its end on: what has changed in a conversation is mostly the last message. */
function isSameList(before: readonly unknown[], now: readonly unknown[]): boolean {
  if (before.length !== now.length) return false;
  for (let at = now.length - 1; at >= 0; at--) if (!Object.is(before[at], now[at])) return false;
  return true;
}
