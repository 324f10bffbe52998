import type { FileKind } from "../../files/file-facts.ts";
import type { FileSource, Model } from "../../messages/messages.ts";
import type { ServicePreset } from "../services/presets.ts";

/** How the contents of a file may reach a service. */
export type SentSource = Exclude<FileSource["type"], "stored">;

/** What a service takes of files of one kind. */
export interface FileRule {
  /** Media types. Absent: any of the kind. */
  readonly types?: readonly string[];
  readonly sources: readonly SentSource[];
  /** Of contents in the request, decoded. */
  readonly maxBytes?: number;
  /** Addresses that it loads. Absent: `https:` and `http:`. */
  readonly urls?: readonly string[];
  /**
   * Which models take it, by their ids, where `input` of the model does not say so. Absent for images:
   * those whose `input` is not known. Absent for all else but text and documents: none.
   */
  readonly models?: RegExp;
  /** Only models that read images take it. */
  readonly withImages?: true;
}

/** What a service takes of files, by kind. Text that is here is sent as text where it has no form for it. */
export type FileTable = { readonly [Kind in FileKind]?: FileRule } & {
  /** PDF and other documents that a request may have. */
  readonly maxDocuments?: number;
};

/** The table of a model at a service, which `files.ts` in the folder of a format exports. */
export type FormatFiles = (model: Model, service: Pick<ServicePreset, "id">) => FileTable;

/** Images as nearly all services read them. */
export const USUAL_IMAGES: readonly string[] = [
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
];
/** For images where a service does not say how large they may be. */
export const USUAL_IMAGE_BYTES = 5_000_000;
/** For images that may have 5 MB in base64: those of Claude at other services. */
export const ENCODED_IMAGE_BYTES = 3_750_000;
/** For every model of a service. */
export const ANY_MODEL: RegExp = /^/;
