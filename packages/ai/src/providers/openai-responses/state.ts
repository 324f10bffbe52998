import type { ResponseInputItem } from "openai/resources/responses/responses";
import type { StreamOptions } from "../../client/client.ts";
import type { OpenAIOptions } from "../../client/generation-options.ts";
import type { AssistantMessage, Message, Model } from "../../messages/messages.ts";
import { hashId, isOwn } from "../../messages/transform-messages.ts";

const PREFIX_CHARS = 24;

/** Messages of a transcript, each with its items. */
export type Items = readonly {
  readonly message: Message;
  readonly items: readonly ResponseInputItem[];
}[];

/** What a request asks of the state that the service keeps. */
export interface ResponseState extends OpenAIOptions {
  /** Whether the service is asked to keep the response. */
  readonly isKept: boolean;
}

/** Reads the options of a service that are about state. */
export function readState({ providerOptions }: StreamOptions, service: string): ResponseState {
  const { openai, "azure-openai-responses": azure } = providerOptions ?? {};
  const own = service === "openai" ? openai : service === "azure-openai-responses" ? azure : {};
  const { background, conversation, previousResponseId, store } = own ?? {};
  const isNeeded = background || conversation !== undefined || previousResponseId !== undefined;
  return { ...own, isKept: store ?? isNeeded ?? false };
}

/** A hash of all that the service has once it has kept these: it changes with every edit. */
export function computePrefix(groups: Items, conversation = ""): string {
  const items = groups.flatMap((group) => group.items);
  return hashId(conversation + JSON.stringify(items), PREFIX_CHARS);
}

/** Where a request goes on: the last response that the service has kept, and what is new since. */
export interface Continuation {
  readonly message: AssistantMessage;
  readonly responseId: string;
  readonly input: ResponseInputItem[];
}

/**
 * The last response that was kept and stands where it stood: what precedes it is what the service
 * has. Nothing if the transcript was edited or compacted, or if nothing came after it.
 */
export function findContinuation(
  groups: Items,
  model: Model,
  conversation?: string,
): Continuation | undefined {
  const at = groups.findLastIndex(({ message }) => isKept(message, model));
  const { message } = groups[at] ?? {};
  if (message?.role !== "assistant" || message.responseId === undefined) return undefined;
  if (message.prefix !== computePrefix(groups.slice(0, at + 1), conversation)) return undefined;
  const input = groups.slice(at + 1).flatMap(({ items }) => items);
  return input.length > 0 ? { message, responseId: message.responseId, input } : undefined;
}

/** Whether a conversation has answers of the transcript. */
export function isInConversation({ message }: Items[number], conversation: string): boolean {
  return message.role === "assistant" && message.report?.details?.["conversation"] === conversation;
}

function isKept(message: Message, model: Model): boolean {
  return (
    message.role === "assistant" &&
    message.prefix !== undefined &&
    message.failure === undefined &&
    isOwn(message, model)
  );
}
