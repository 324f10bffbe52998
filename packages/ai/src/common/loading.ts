const loading = new Set<Promise<unknown>>();

/** Notes that a part of the code is being loaded, so that a test's clock stands still meanwhile. */
export function loadPart<T>(part: Promise<T>): Promise<T> {
  loading.add(part);
  const forget = (): boolean => loading.delete(part);
  part.then(forget, forget);
  return part;
}

/** Resolves when the parts that are being loaded are there; absent where there are none. */
export function waitForLoading(): Promise<unknown> | undefined {
  return loading.size > 0 ? Promise.allSettled(loading) : undefined;
}
