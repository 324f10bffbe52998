import type { Fetch } from "../../client/fetch.ts";
import { isRecord, toRecord } from "../../common/records.ts";
import type { Context, Tool } from "../../messages/messages.ts";
import { adaptSchema } from "../../schema/strict-schema.ts";
import { readRejection } from "./rejection.ts";
import type { Draft, FormatOutput, OptionTarget } from "./table.ts";

const DEFAULT_NAME = "answer";

/** How a request asks for its output: by what is written, or by a tool that stays in the context. */
interface PreparedOutput {
  readonly context: Context;
  readonly write?: (draft: Draft) => object;
  /** The tools to send where the service rejects what is written. */
  readonly fallback?: readonly Tool[];
  /** Why the service cannot be asked, if there is no tool that stands for it. */
  readonly reason?: string;
}

/**
 * Asks the service itself where it enforces the schema, and leaves out the tool that stands for it.
 * Where it does not, the tool is how the model answers; without one there is a reason.
 */
export function prepareOutput(
  format: FormatOutput | undefined,
  target: OptionTarget,
  context: Context,
): PreparedOutput {
  const { outputFormat, toolChoice } = target.options;
  if (!outputFormat) return { context };
  const { name = DEFAULT_NAME, schema: wanted, tool } = outputFormat;
  const tools = context.tools?.filter((one) => one.name !== tool);
  const hasTool = context.tools?.some((one) => one.name === tool) ?? false;
  const fallBack = (reason: string): PreparedOutput =>
    hasTool ? { context } : { context, reason };
  // A caller that forces the tool wants the call.
  if (tool !== undefined && typeof toolChoice === "object" && toolChoice.name === tool)
    return fallBack("the tool is forced");
  const supports =
    target.model.quirks?.structuredOutput ??
    target.service.quirks?.structuredOutput ??
    format?.supports(target);
  if (!format || !supports) return fallBack("it has no structured output there");
  if (supports === "alone" && (tools?.length || hasServiceTools(target) || hasCalls(context)))
    return fallBack("it has no structured output beside tools there");
  const { schema, reason } = adaptSchema(wanted, format.dialect);
  if (!schema) return fallBack(`the service cannot enforce the schema, because ${reason}`);
  if (schema["type"] !== "object" || "anyOf" in schema)
    return fallBack("the schema is not that of one object");
  const { tools: _, ...rest } = context;
  return {
    context: tools?.length ? { ...rest, tools } : rest,
    write: (draft) => format.write({ name, schema }, draft),
    ...(hasTool && context.tools && { fallback: context.tools }),
  };
}

/** What a service says of a schema or a form that it does not take. */
const REJECTED = /schema|grammar|structured|response_?format|output_?(config|format)|text\.format/i;
const STATUSES: ReadonlySet<number> = new Set([400, 422]);

/**
 * Asks again with the tool where the service rejects the form: some find a schema too large, and
 * some routes lead to models without it. `rewrite` gives the body with the tool; of the one that was
 * sent, which hooks may have changed, only the fields are replaced in which both differ.
 */
export function fetchWithTool(fetch: Fetch, native: Body, rewrite: () => Body): Fetch {
  return async (url, init) => {
    const response = await fetch(url, init);
    if (init.method !== "POST" || !STATUSES.has(response.status)) return response;
    const { rejected, text } = await readRejection(response);
    const sent = parseJson(init.body);
    if (!isRecord(sent) || !REJECTED.test(text)) return rejected;
    const body: Record<string, unknown> = { ...sent };
    const other = rewrite();
    for (const name of new Set([...Object.keys(native), ...Object.keys(other)])) {
      if (JSON.stringify(native[name]) === JSON.stringify(other[name])) continue;
      if (name in other) body[name] = other[name];
      else delete body[name];
    }
    return fetch(url, { ...init, body: JSON.stringify(body) });
  };
}

type Body = Readonly<Record<string, unknown>>;

function parseJson(text = ""): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A hook sent something else: the rejection stands.
    return undefined;
  }
}

function hasServiceTools({ options, service }: OptionTarget): boolean {
  const own: unknown = Object.entries(options.providerOptions ?? {}).find(
    ([id]) => id === service.id,
  )?.[1];
  return [options.serviceTools, toRecord(own)["serviceTools"]].some(
    (tools) => Array.isArray(tools) && tools.length > 0,
  );
}

/** Some formats declare the tools that the transcript calls. */
function hasCalls({ messages }: Context): boolean {
  return messages.some(
    ({ content, role }) =>
      role === "assistant" &&
      Array.isArray(content) &&
      content.some(({ type }) => type === "toolCall"),
  );
}
