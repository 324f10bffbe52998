import { ANY_MODEL, type FormatFiles, USUAL_IMAGE_BYTES, USUAL_IMAGES } from "../files/table.ts";

/** A request may have 32 MB in all, with base64 and everything else in it. */
const MAX_DOCUMENT_BYTES = 22_000_000;

/** "Vision", "PDF support" and "Files API" in the documentation of the Claude API. */
export const FILES: FormatFiles = () => ({
  image: {
    types: USUAL_IMAGES,
    sources: ["base64", "url", "id"],
    urls: ["https:"],
    maxBytes: USUAL_IMAGE_BYTES,
  },
  pdf: {
    sources: ["base64", "url", "id"],
    urls: ["https:"],
    maxBytes: MAX_DOCUMENT_BYTES,
    models: ANY_MODEL,
    withImages: true,
  },
  text: { sources: ["base64", "id"] },
});
