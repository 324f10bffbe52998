import { findFormat } from "./formats.ts";
import type { RequestCheck } from "./problems.ts";

export type { RequestCheck } from "./problems.ts";

/** The check for requests of a format to a service. Throws for a format that has none. */
export function requestCheckFor({
  api,
  provider,
}: {
  api: string;
  provider: string;
}): RequestCheck {
  const { check, serviceChecks } = findFormat(api);
  return serviceChecks?.[provider] ?? check;
}
