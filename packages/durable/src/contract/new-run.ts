import { createHash, randomUUID } from "node:crypto";
import type { PromptInput } from "@gyre/agent";
import { DurableError } from "./errors.ts";
import { assertFits, assertName, encodeMessages } from "./messages.ts";
import type { NewRun } from "./store.ts";
import type { StartOptions } from "./types.ts";

/** What is stored of a run that is started. */
export function toNewRun(
  input: PromptInput,
  options: StartOptions & Pick<NewRun, "parent" | "budget">,
): NewRun {
  const {
    agent,
    tenant = "",
    pool,
    priority = 0,
    at,
    limits,
    output,
    meta,
    ifIdle,
  } = options ?? {};
  if (typeof agent !== "string" || agent === "") {
    throw new DurableError("invalid", 'A run needs the name of an agent: write { agent: "name" }.');
  }
  const id = options.id ?? randomUUID();
  const { session = id, traceparent = "" } = options;
  for (const [name, value] of Object.entries({
    ...{ id, session, agent, tenant, traceparent },
    ...(pool !== undefined && { pool }),
  })) {
    assertName(`\`${name}\` of a run`, value);
  }
  if (id === "" || session === "") {
    throw new DurableError("invalid", "The id of a run, and that of its session, is not empty.");
  }
  if (!Number.isSafeInteger(priority)) {
    throw new DurableError("invalid", `\`priority\` is a whole number: got ${priority}.`);
  }
  if (at && Number.isNaN(at.getTime())) {
    throw new DurableError("invalid", "`at` is no date.");
  }
  const metaText = meta && JSON.stringify(meta);
  if (metaText !== undefined) assertFits("`meta` of a run", metaText);
  const asked = { input, agent, tenant, session: options.session, output, limits };
  return {
    id,
    session: options.session ?? id,
    agent,
    tenant,
    ...(pool !== undefined && { pool }),
    priority,
    digest: createHash("sha256").update(JSON.stringify(asked)).digest("hex"),
    prompt: encodeMessages(input),
    ...(ifIdle && { ifIdle }),
    ...(at && { at: at.getTime() }),
    ...(limits && { limits: JSON.stringify(limits) }),
    ...(output && { output: JSON.stringify(output) }),
    ...(metaText !== undefined && { meta: metaText }),
    ...(options.traceparent !== undefined && { traceparent: options.traceparent }),
    ...(options.parent && { parent: options.parent }),
    ...(options.budget !== undefined && { budget: options.budget }),
  };
}
