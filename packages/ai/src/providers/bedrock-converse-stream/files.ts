import {
  ANY_MODEL,
  ENCODED_IMAGE_BYTES,
  type FileTable,
  type FormatFiles,
} from "../files/table.ts";
import { listMediaTypes } from "./media-formats.ts";
import { findFamily } from "./request.ts";

const MAX_DOCUMENTS = 5;
const MAX_DOCUMENT_BYTES = 4_500_000;
/** For PDF, where the limit above does not hold; a request to Claude may have 20 MB in all, base64 included. */
const MAX_CLAUDE_PDF_BYTES = 14_000_000;
/** A request to Nova may have 25 MB in all, base64 included. */
const MAX_LARGE_BYTES = 18_000_000;
/** Those with the usual limit for PDF. */
const BEFORE_CLAUDE_4 = /claude-([1-3]|v\d|instant)/;

const images: FileTable["image"] = {
  types: listMediaTypes("image"),
  sources: ["base64"],
  maxBytes: ENCODED_IMAGE_BYTES,
};
const documents: FileTable["document"] = {
  types: listMediaTypes("application"),
  sources: ["base64"],
  maxBytes: MAX_DOCUMENT_BYTES,
};

/** "Supported models and model features" and "API restrictions" in the user guide of Amazon Bedrock. */
const CLAUDE: FileTable = {
  maxDocuments: MAX_DOCUMENTS,
  image: images,
  pdf: { sources: ["base64"], maxBytes: MAX_CLAUDE_PDF_BYTES, models: ANY_MODEL },
  document: documents,
};
const CLAUDE_3: FileTable = {
  ...CLAUDE,
  pdf: { sources: ["base64"], maxBytes: MAX_DOCUMENT_BYTES, models: ANY_MODEL },
};
const S3 = { sources: ["base64", "url"], urls: ["s3:"] } as const;
const NOVA: FileTable = {
  maxDocuments: MAX_DOCUMENTS,
  image: { ...images, ...S3 },
  pdf: { ...S3, maxBytes: MAX_LARGE_BYTES, models: ANY_MODEL, withImages: true },
  video: {
    ...S3,
    types: listMediaTypes("video"),
    maxBytes: MAX_LARGE_BYTES,
    models: /pro|lite|premier|omni/,
  },
  audio: { ...S3, types: listMediaTypes("audio"), maxBytes: MAX_LARGE_BYTES, models: /omni/ },
  document: { ...documents, ...S3, withImages: true },
};
/** What the others take differs by model: what is said of it in `input` holds. */
const OTHERS: FileTable = {
  maxDocuments: MAX_DOCUMENTS,
  image: images,
  pdf: { sources: ["base64"], maxBytes: MAX_DOCUMENT_BYTES },
  audio: { sources: ["base64"], types: listMediaTypes("audio"), maxBytes: MAX_LARGE_BYTES },
  video: { sources: ["base64"], types: listMediaTypes("video"), maxBytes: MAX_LARGE_BYTES },
};

export const FILES: FormatFiles = (model) => {
  const family = findFamily(model);
  if (family === "claude") return BEFORE_CLAUDE_4.test(model.id) ? CLAUDE_3 : CLAUDE;
  return family === "nova" ? NOVA : OTHERS;
};
