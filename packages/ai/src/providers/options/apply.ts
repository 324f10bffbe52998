import { isRecord } from "../../common/records.ts";
import type { Fetch } from "../../client/fetch.ts";
import type { Context } from "../../messages/messages.ts";
import type { nearNames } from "../../schema/near-names.ts";
import { ProviderError } from "../errors/provider-error.ts";
import { fetchWithTool, prepareOutput } from "./output-format.ts";
import {
  COMMON,
  type CommonName,
  type Draft,
  type FormatOptions,
  type OptionTarget,
  SERVICE_OPTIONS,
} from "./table.ts";

/** A request has an option that its service or its model does not have. Nothing was sent. */
export class OptionError extends ProviderError {
  readonly code = "unsupported_option";
  /** Its name, as the caller wrote it: `topK`, `providerOptions.anthropic.speed`. */
  readonly option: string;

  constructor(option: string, message: string) {
    super(message, { kind: "bad_request", retryable: false });
    this.name = "OptionError";
    this.option = option;
  }
}

/** The options of a request, ready to be added, and the context that is sent with them. */
export interface PreparedOptions {
  readonly apply: ApplyOptions;
  readonly context: Context;
}

/** Adds the options to a request that has been written. */
export type ApplyOptions = (
  request: Draft["request"],
  written: {
    body: Record<string, unknown>;
    headers: Record<string, string>;
    wrapFetch?: (fetch: Fetch) => Fetch;
    sign?: unknown;
  },
  formatMessages: Draft["formatMessages"],
  /** Writes the body again with another context. */
  rewrite: (context: Context) => Record<string, unknown>,
) => void;

/**
 * Checks the options of a request that not every service has, and returns what writes them. Throws
 * an `OptionError` for the first that is unknown, is not what it has to be, or that the service or
 * the model does not have. `findNear` is given, so that a page that never loads this has it in one
 * piece with all else.
 */
export function prepareOptions(
  format: FormatOptions,
  names: readonly string[],
  target: OptionTarget,
  findNear: typeof nearNames,
  whole: Context,
): PreparedOptions {
  const given = target.options as Readonly<Record<string, unknown>>;
  const steps: ((draft: Draft) => object)[] = [];
  let context = whole;
  let write: ((draft: Draft) => object) | undefined;
  let fallback: Context["tools"];
  for (const name of names) {
    const value = given[name];
    if (value === undefined) continue;
    if (name === "outputFormat") {
      checkValue(name, value);
      const output = prepareOutput(format.output, target, context);
      if (output.reason !== undefined) throw createOutputError(output.reason, target);
      ({ context, fallback, write } = output);
    } else if (name === "providerOptions")
      steps.push(...prepareOwn(format, value, target, findNear));
    else if (isCommon(name)) steps.push(prepareCommon(format, name, value, target));
    else throw createUnknownError(name, findNear);
  }
  const apply: ApplyOptions = (request, written, formatMessages, rewrite) => {
    const wrapFetch: Draft["wrapFetch"] = (wrap) => {
      const { wrapFetch: inner = (fetch) => fetch } = written;
      written.wrapFetch = (fetch) => wrap(inner(fetch));
    };
    const { body, headers } = written;
    const add = (draft: Draft, all: readonly ((draft: Draft) => object)[]): void => {
      for (const step of all) mergeInto(draft.body, step(draft));
    };
    const draft = { request, formatMessages, body, headers, wrapFetch };
    add(draft, write ? [write, ...steps] : steps);
    // A signature is of one body.
    if (!fallback || written.sign) return;
    const withTool = { ...request.context, tools: fallback };
    const writeWithTool = (): Record<string, unknown> => {
      const other = rewrite(withTool);
      add({ ...draft, body: other, headers: { ...headers }, wrapFetch: () => {} }, steps);
      return other;
    };
    wrapFetch((fetch) => fetchWithTool(fetch, body, writeWithTool));
  };
  return { apply, context };
}

/** The common options that a service has, in a format. */
export function listTaken(format: FormatOptions, service: string): CommonName[] {
  const taken = format.taken?.[service];
  const written = Object.keys(format.common).filter(isCommon);
  return taken ? written.filter((name) => taken.includes(name)) : written;
}

function isCommon(name: string): name is CommonName {
  return Object.hasOwn(COMMON, name);
}

function prepareCommon(
  format: FormatOptions,
  name: CommonName,
  value: unknown,
  target: OptionTarget,
): (draft: Draft) => object {
  const { service } = target;
  const taken = listTaken(format, service.id);
  const write = format.common[name] as ((value: unknown, draft: Draft) => object) | undefined;
  if (!write || !taken.includes(name)) {
    const instead = format.elsewhere?.[service.id]?.[name] ?? adviseInstead(name, taken);
    throw new OptionError(
      name,
      `${service.name} has no option "${name}", which the request to model "${target.model.id}" has. ${instead}`,
    );
  }
  checkValue(name, value);
  refuse(format, name, name, target);
  return (draft) => attempt(name, () => write(value, draft));
}

function checkValue(name: CommonName, value: unknown): void {
  const { what, is } = COMMON[name];
  if (!is(value)) throw new OptionError(name, `The option "${name}" is ${what}.`);
}

function createOutputError(reason: string, { model, service }: OptionTarget): OptionError {
  return new OptionError(
    "outputFormat",
    `${service.name} cannot be asked for "outputFormat" with model "${model.id}": ${reason}. Leave it out, or give the "tool" that stands for it.`,
  );
}

function prepareOwn(
  format: FormatOptions,
  given: unknown,
  target: OptionTarget,
  findNear: typeof nearNames,
): ((draft: Draft) => object)[] {
  if (!isRecord(given)) {
    throw new OptionError("providerOptions", 'The option "providerOptions" is an object.');
  }
  const known: Readonly<Record<string, object>> = SERVICE_OPTIONS;
  for (const [id, options] of Object.entries(given)) {
    const option = `providerOptions.${id}`;
    const names = known[id];
    if (!names) {
      const ids = Object.keys(known);
      const [near] = findNear(id, ids);
      const hint =
        near === undefined ? `Services with some: ${ids.join(", ")}.` : `Did you mean "${near}"?`;
      throw new OptionError(option, `There are no options of a service "${id}". ${hint}`);
    }
    if (!isRecord(options)) throw new OptionError(option, `"${option}" is an object.`);
    for (const name of Object.keys(options)) {
      if (Object.hasOwn(names, name)) continue;
      const others = Object.keys(names);
      const [near] = findNear(name, others);
      const hint = near === undefined ? `It has ${others.join(", ")}.` : `Did you mean "${near}"?`;
      throw new OptionError(
        `${option}.${name}`,
        `There is no option "${name}" in ${option}. ${hint} For other fields of the request use onPayload.`,
      );
    }
  }
  const { service } = target;
  const own = given[service.id];
  if (!isRecord(own)) return [];
  const writers: Readonly<Record<string, ((value: never, draft: Draft) => object) | undefined>> =
    Object.entries(format.services).find(([id]) => id === service.id)?.[1] ?? {};
  return Object.entries(own).flatMap(([name, value]) => {
    if (value === undefined) return [];
    const option = `providerOptions.${service.id}.${name}`;
    const write = writers[name];
    if (!write) {
      throw new OptionError(
        option,
        `The API format "${target.model.api}" of model "${target.model.id}" has no option "${option}". Use a model of another format of ${service.name}, or leave it out.`,
      );
    }
    refuse(format, name, option, target);
    return [(draft: Draft) => attempt(option, () => write(value as never, draft))];
  });
}

function refuse(format: FormatOptions, name: string, option: string, target: OptionTarget): void {
  const why = format.refuse?.(name, target);
  if (why === undefined) return;
  throw new OptionError(
    option,
    `Model "${target.model.id}" rejects the option "${option}": ${why}`,
  );
}

/** What a writer throws is about its option. */
function attempt(option: string, write: () => object): object {
  try {
    return write();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new OptionError(option, `The option "${option}" cannot be sent: ${error.message}`);
  }
}

/** What stands for an option where it is absent, if the service has one of these. */
const NEAR: Readonly<Partial<Record<CommonName, readonly CommonName[]>>> = {
  minP: ["topP"],
  topK: ["topP"],
  presencePenalty: ["frequencyPenalty"],
  frequencyPenalty: ["presencePenalty"],
};

const ADVICE: Readonly<Partial<Record<CommonName, string>>> = {
  verbosity: "Leave it out, and say in the instructions how long answers are to be.",
  parallelToolCalls:
    "Leave it out; maxToolConcurrency of an agent limits how many calls run at once.",
  cacheBreakpoints: "Leave it out, or use cacheRetention.",
};

function adviseInstead(name: CommonName, taken: readonly CommonName[]): string {
  const near = NEAR[name]?.find((one) => taken.includes(one));
  const list = taken.length > 0 ? ` It has ${taken.join(", ")}.` : "";
  const advice =
    near === undefined ? (ADVICE[name] ?? "Leave it out.") : `Use "${near}", or leave it out.`;
  return `${advice}${list} For other fields of the request use onPayload.`;
}

function createUnknownError(name: string, findNear: typeof nearNames): OptionError {
  const [near] = findNear(name, [...Object.keys(COMMON), "providerOptions", ...PLAIN]);
  const hint = near === undefined ? "Leave it out." : `Did you mean "${near}"?`;
  return new OptionError(
    name,
    `There is no option "${name}". ${hint} For other fields of the request use onPayload.`,
  );
}

/** Options that every service has, for hints. */
const PLAIN = ["temperature", "maxTokens", "thinkingLevel", "toolChoice", "cacheRetention"];

/** Objects are merged; every other value replaces what was there. */
function mergeInto(body: Record<string, unknown>, part: object): void {
  for (const [name, value] of Object.entries(part)) {
    const before = body[name];
    if (isRecord(before) && isRecord(value)) {
      const merged = { ...before };
      mergeInto(merged, value);
      body[name] = merged;
    } else if (value !== undefined) body[name] = value;
  }
}
