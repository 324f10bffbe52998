import { DurableError } from "./errors.ts";

/** Throws on an option that is no number. */
export function assertNumber(name: string, value: unknown): void {
  assertThat(name, value, Number.isFinite(value), "a number");
}

/** Throws on one that is smaller than makes sense, too. */
export function assertAtLeast(name: string, value: unknown, least: number): void {
  assertThat(
    name,
    value,
    typeof value === "number" && value >= least,
    `a number of at least ${least}`,
  );
}

/** The same for what is counted. */
export function assertCount(name: string, value: unknown, least: number): void {
  const isCount = value === Infinity || Number.isSafeInteger(value);
  const isRight = isCount && Number(value) >= least;
  assertThat(name, value, isRight, `a whole number of at least ${least}`);
}

function assertThat(name: string, value: unknown, isRight: boolean, what: string): void {
  if (isRight) return;
  throw new DurableError("invalid", `\`${name}\` is ${what}: got ${String(value)}.`);
}
