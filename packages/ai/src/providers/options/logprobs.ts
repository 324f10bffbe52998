import type { StreamOptions } from "../../client/client.ts";
import type { ServiceReport } from "../../messages/messages.ts";

/** Adds the probabilities of some tokens to a report, in the service's own form, if they were requested. */
export function addLogprobs(report: ServiceReport, options: StreamOptions, tokens: unknown): void {
  if (options.logprobs === undefined || !Array.isArray(tokens)) return;
  const details = (report.details ??= {});
  const known = details["logprobs"];
  if (Array.isArray(known)) for (const token of tokens) known.push(token);
  else details["logprobs"] = [...tokens];
}
