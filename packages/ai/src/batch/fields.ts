import { ProviderError } from "../providers/errors/provider-error.ts";

const MS_PER_S = 1_000;

/** The id of what a service has made, or the one that it was asked for. Throws where there is none. */
export function readId(value: unknown, asked = ""): string {
  const id = typeof value === "string" && value !== "" ? value : asked;
  if (id !== "") return id;
  throw new ProviderError("The answer of the service has no id. Try again.", {
    kind: "incomplete",
  });
}

/** The error where a service has counted results, and does not have them. */
export function createMissingError(count: number, why: string): ProviderError {
  return new ProviderError(`The service counts ${count} results of the batch, ${why} Try again.`, {
    kind: "incomplete",
  });
}

/** A count that a service says as a number, or as a text. */
export function readCount(value: unknown): number | undefined {
  if (typeof value === "string" && /^\d+$/.test(value)) return Number(value);
  return typeof value === "number" ? value : undefined;
}

/** When a batch expires: a date, or seconds since 1970. */
export function readTime(value: unknown): { expiresAt?: number } {
  if (typeof value === "number") return { expiresAt: value * MS_PER_S };
  const time = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? {} : { expiresAt: time };
}
