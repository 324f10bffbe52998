/** The message of an error, for people. Never throws, and is empty only where the thrown value is an empty string. */
export function errorMessage(error: unknown): string {
  try {
    return error instanceof Error ? error.message || error.name : String(error);
  } catch {
    return "an error that cannot be shown";
  }
}

/** The code of a system error (`ENOENT`), as Node puts it on its errors. */
export function errnoOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
