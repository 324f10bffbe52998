import {
  describeFile,
  FILE_KINDS,
  fileKind,
  type FileKind,
  fileSize,
  isImage,
  leaveOut,
} from "../../files/file-facts.ts";
import { decodeText, toFile } from "../../files/files.ts";
import type {
  AssistantContent,
  AssistantMessage,
  FileContent,
  Message,
  Model,
  ModelInput,
  UserContent,
} from "../../messages/messages.ts";
import { isOwn, toWellFormed } from "../../messages/transform-messages.ts";
import { ProviderError } from "../errors/provider-error.ts";
import type { ServicePreset } from "../services/presets.ts";
import type { FileRule, FileTable, FormatFiles, SentSource } from "./table.ts";

/** A request has a file that its service or its model does not take. Nothing was sent. */
export class FileError extends ProviderError {
  readonly code = "unsupported_file";
  readonly file: FileContent;
  /** The id of the service. */
  readonly service: string;

  constructor(file: FileContent, service: string, message: string) {
    super(message, { kind: "bad_request", retryable: false });
    this.name = "FileError";
    this.file = file;
    this.service = service;
  }
}

/** Where a request goes. */
export interface FileTarget {
  model: Model;
  service: Pick<ServicePreset, "id" | "name">;
}

/** Images as formats without a table take them: the format itself leaves out what it cannot send. */
const IMAGES_ALONE: FileTable = { image: { sources: ["base64"] } };

/**
 * Checks the files of a request against what its service takes, and returns the messages with those
 * alone that can be sent. Text without a form of its own becomes text. A file of the last message, if
 * that is of the user, is what the request is about: one that is not taken throws a `FileError`. Elsewhere
 * (an earlier message, which another model may have read; the result of a tool) a text stands for it, and so
 * it does for an `image` block everywhere.
 */
export function prepareFiles(
  messages: readonly Message[],
  target: FileTarget,
  format: FormatFiles | undefined,
): Message[] {
  const table = format?.(target.model, target.service) ?? IMAGES_ALONE;
  const check = new FileCheck(table, target, format !== undefined);
  // From the last to the first: where a service takes only so many, these are the newest.
  const prepared = messages.toReversed().map((message, index): Message => {
    if (message.role === "assistant") return showMade(message, target.model);
    if (typeof message.content === "string") return message;
    const isAsked = message.role === "user" && index === 0;
    const content = message.content.toReversed().map((block) => check.prepare(block, isAsked));
    return { ...message, content: content.toReversed() };
  });
  return prepared.toReversed();
}

/** What a model made is shown to that model alone. */
function showMade(message: AssistantMessage, model: Model): AssistantMessage {
  const own = isOwn(message, model);
  const content = message.content.map((block): AssistantContent => {
    if (block.type !== "image" && block.type !== "file") return block;
    const file = toFile(block);
    if (own && file.source.type === "base64") return file;
    const what = isImage(file) ? "Image" : "File";
    return { type: "text", text: `[${what} made by the model: ${file.mediaType}]` };
  });
  return { ...message, content };
}

/** What a model at a service takes of files, for people: `images (as data or by URL), text`. */
export function describeTaken(table: FileTable, model: Model): string {
  const parts = FILE_KINDS.flatMap((kind) => {
    const rule = table[kind];
    if (kind === "text" && !rule) return ["text (as data)"];
    if (!rule || !canRead(model, kind, rule)) return [];
    const sources =
      kind === "text" ? [...new Set(["base64" as const, ...rule.sources])] : rule.sources;
    return [`${KIND_NAMES[kind]} (${sources.map((source) => SOURCE_NAMES[source]).join(", ")})`];
  });
  return parts.join(", ");
}

/** Whether a model takes files of a kind, from what is known of it and of its service. */
export function canRead(model: Model, kind: FileKind, rule: FileRule): boolean {
  const { id, input } = model;
  if (isInput(kind) && input?.includes(kind)) return true;
  if (rule.withImages && input && !input.includes("image")) return false;
  if (rule.models) return rule.models.test(id);
  return kind === "image" ? input === undefined : !isInput(kind) || kind === "text";
}

function isInput(kind: FileKind): kind is FileKind & ModelInput {
  return kind !== "document";
}

const KIND_NAMES: Readonly<Record<FileKind, string>> = {
  image: "images",
  pdf: "PDF",
  text: "text",
  audio: "audio",
  video: "video",
  document: "documents",
};
const SOURCE_NAMES: Readonly<Record<SentSource, string>> = {
  base64: "as data",
  url: "by URL",
  id: "by file id",
};
const WEB: readonly string[] = ["https:", "http:"];

class FileCheck {
  readonly #table: FileTable;
  readonly #target: FileTarget;
  readonly #writesFiles: boolean;
  #documents = 0;

  constructor(table: FileTable, target: FileTarget, writesFiles: boolean) {
    this.#table = table;
    this.#target = target;
    this.#writesFiles = writesFiles;
  }

  prepare(block: UserContent, isAsked: boolean): UserContent {
    if (block.type !== "image" && block.type !== "file") return block;
    // Formats of others check their images themselves.
    if (block.type === "image" && !this.#writesFiles) return block;
    const file = withPlainName(toFile(block));
    const why = this.#refuse(file);
    if (why === undefined) return this.#asText(file) ?? file;
    if (block.type === "file" && isAsked) throw this.#explain(file, why);
    return leaveOut(block, why);
  }

  /** Text that is here, where the service has no form for it. */
  #asText({ mediaType, name, source }: FileContent): UserContent | undefined {
    if (source.type !== "base64" || fileKind(mediaType) !== "text") return undefined;
    if (this.#table.text?.sources.includes("base64")) return undefined;
    const label = name === undefined ? mediaType : `${name}, ${mediaType}`;
    const text = `[File: ${label}]\n${decodeText(source.data)}\n[End of file]`;
    return { type: "text", text };
  }

  /** Why a file cannot be sent; nothing if it can. */
  #refuse(file: FileContent): string | undefined {
    const { source, mediaType } = file;
    if (source.type === "stored")
      return "its contents are in a store that the request does not have";
    if (source.type === "base64" && source.data === "") return "it is empty";
    return refuseFile(file, this.#table, this.#target) ?? this.#countDocument(fileKind(mediaType));
  }

  #countDocument(kind: FileKind): string | undefined {
    const { maxDocuments = Number.POSITIVE_INFINITY } = this.#table;
    if (kind !== "pdf" && kind !== "document") return undefined;
    if (this.#documents >= maxDocuments) {
      return `this service takes at most ${maxDocuments} documents in a request`;
    }
    this.#documents++;
    return undefined;
  }

  #explain(file: FileContent, why: string): FileError {
    const { model, service } = this.#target;
    return new FileError(
      file,
      service.id,
      `The file (${describeFile(file)}) cannot be sent to ${service.name}: ${why}. Model "${model.id}" takes ${describeTaken(this.#table, model)}. Leave the file out, convert it, or use another model.`,
    );
  }
}

const NO_IMAGES = "this model reads no images";

/**
 * Why a service or a model does not take a file; nothing if it does. One that is stored counts as one whose
 * contents are in the request.
 */
export function refuseFile(
  file: FileContent,
  table: FileTable,
  { model, service }: FileTarget,
): string | undefined {
  const { mediaType, source } = file;
  const kind = fileKind(mediaType);
  const sent = source.type === "stored" ? "base64" : source.type;
  const rule = table[kind];
  if (kind === "text" && sent === "base64") return undefined;
  if (!rule) return kind === "image" ? NO_IMAGES : `this service reads no ${KIND_NAMES[kind]}`;
  if (!canRead(model, kind, rule)) {
    return kind === "image" ? NO_IMAGES : `this model reads no ${KIND_NAMES[kind]}`;
  }
  // Of an address it may be known only that an image is there.
  if (rule.types && !mediaType.endsWith("/*") && !rule.types.includes(mediaType.toLowerCase())) {
    return "this service does not read its type";
  }
  if (!rule.sources.includes(sent)) {
    return `this service takes ${KIND_NAMES[kind]} only ${listSources(rule)}`;
  }
  if (source.type === "url") return refuseUrl(source.url, rule);
  if (source.type !== "id") return refuseSize(file, rule);
  return source.service === service.id ? undefined : `its id is of the service "${source.service}"`;
}

/** With no name where it is blank, and a name that a request can hold. */
function withPlainName(file: FileContent): FileContent {
  const { name, ...rest } = file;
  if (name === undefined) return file;
  return name.trim() === "" ? rest : { ...rest, name: toWellFormed(name) };
}

function listSources({ sources }: FileRule): string {
  return sources.map((source) => SOURCE_NAMES[source]).join(" or ");
}

function refuseSize(file: FileContent, { maxBytes }: FileRule): string | undefined {
  if (maxBytes === undefined || (fileSize(file) ?? 0) <= maxBytes) return undefined;
  return `this service takes at most ${Math.floor(maxBytes / 1000)} KB`;
}

function refuseUrl(url: string, { urls = WEB }: FileRule): string | undefined {
  const scheme = /^[a-z][a-z0-9+.-]*:/i.exec(url)?.[0].toLowerCase();
  if (scheme !== undefined && urls.includes(scheme)) return undefined;
  return `this service loads only addresses that begin with ${urls.join(" or ")}`;
}
