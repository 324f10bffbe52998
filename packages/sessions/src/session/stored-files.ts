import { type AgentMessage, isLlmMessage } from "@gyre/agent";
import {
  type AssistantContent,
  type FileContent,
  type FileStore,
  isLarge,
  isStored,
  loadContent,
  type Message,
  storeContent,
  type UserContent,
} from "@gyre/ai";
import type { EntryBody } from "../format/entry.ts";
import type { SessionContext } from "../format/types.ts";
import type { ResultEntry } from "./open-calls.ts";

type Content = readonly (UserContent | AssistantContent)[];

/** Whether an entry has contents that belong into the store of its session. */
export function hasLargeFiles(body: EntryBody): boolean {
  return listContents(body).some((content) => content.some(isLarge));
}

/** The entry that refers to its large contents. They are stored when the promise settles. */
export function storeBody(body: EntryBody, files: FileStore): Promise<EntryBody> {
  return mapContents(body, (content) => storeContent(content, files));
}

/**
 * Puts contents in the place of references, in what an agent gets. What is missing or damaged stays a
 * reference: a request says so.
 */
export async function loadContext(
  context: SessionContext,
  recorded: Map<string, ResultEntry>,
  files: FileStore,
): Promise<SessionContext> {
  const load = (content: Content): Promise<Content> => loadContent(content, files);
  const { messages, queued } = context;
  for (const [id, entry] of recorded) {
    const { result } = entry;
    const content = (await load(result.content)) as UserContent[];
    recorded.set(id, { ...entry, result: { ...result, content } });
  }
  const loadQueue = async (
    queue: SessionContext["queued"]["steering"],
  ): Promise<SessionContext["queued"]["steering"]> =>
    Promise.all(
      queue.map(async (item) => ({ ...item, message: await mapMessage(item.message, load) })),
    );
  return {
    ...context,
    messages: await Promise.all(messages.map((message) => mapMessage(message, load))),
    queued: {
      ...queued,
      steering: await loadQueue(queued.steering),
      followUp: await loadQueue(queued.followUp),
    },
  };
}

/** The hashes of the contents that an entry refers to, each once, by the JSON of its data. */
export function listStoredHashes(data: string): string[] {
  return [...new Set(listStoredFiles(data).map(({ sha256 }) => sha256))];
}

/** The same with their sizes. */
export function listStoredFiles(data: string): { sha256: string; size: number }[] {
  const found: { sha256: string; size: number }[] = [];
  // Most entries refer to none, and are not parsed for it.
  if (!data.includes('"stored"')) return [];
  JSON.parse(data, (_, value: unknown) => {
    if (isBlock(value) && isStored(value)) found.push(value.source);
    return value;
  });
  return found;
}

function isBlock(value: unknown): value is FileContent {
  if (typeof value !== "object" || value === null || !("type" in value)) return false;
  if (value.type !== "file" || !("source" in value)) return false;
  const { source } = value;
  return (
    typeof source === "object" && source !== null && "sha256" in source && isHash(source.sha256)
  );
}

/** Whether a text is a hash, and nothing that could mean another file. */
export function isHash(value: unknown): value is string {
  return typeof value === "string" && /^[0-9a-f]{64}$/.test(value);
}

function listContents(body: EntryBody): Content[] {
  switch (body.type) {
    case "message":
      return listMessage(body.message);
    case "result":
      return [body.result.content];
    case "decision":
      return body.decision.type === "result" ? [body.decision.result.content] : [];
    case "queue":
      return (body.messages ?? []).flatMap(({ message }) => listMessage(message));
    default:
      return [];
  }
}

function listMessage(message: AgentMessage): Content[] {
  if (!isLlmMessage(message) || !Array.isArray(message.content)) return [];
  return [message.content];
}

async function mapContents(
  body: EntryBody,
  map: (content: Content) => Promise<Content>,
): Promise<EntryBody> {
  switch (body.type) {
    case "message":
      return { ...body, message: await mapMessage(body.message, map) };
    case "result": {
      const content = (await map(body.result.content)) as UserContent[];
      return { ...body, result: { ...body.result, content } };
    }
    case "decision": {
      const { decision } = body;
      if (decision.type !== "result") return body;
      const content = (await map(decision.result.content)) as UserContent[];
      return { ...body, decision: { ...decision, result: { ...decision.result, content } } };
    }
    case "queue": {
      const { messages = [] } = body;
      const mapped = messages.map(async (item) => ({
        ...item,
        message: await mapMessage(item.message, map),
      }));
      return { ...body, messages: await Promise.all(mapped) };
    }
    default:
      return body;
  }
}

async function mapMessage<M extends AgentMessage>(
  message: M,
  map: (content: Content) => Promise<Content>,
): Promise<M> {
  const [content] = listMessage(message);
  if (!content) return message;
  const mapped = await map(content);
  return mapped === content ? message : { ...message, content: mapped as Message["content"] };
}
