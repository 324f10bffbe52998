import { ANY_MODEL, type FileTable, type FormatFiles, USUAL_IMAGES } from "../files/table.ts";

const MAX_IMAGE_BYTES = 20_000_000;
/** Of all files of a request. */
const MAX_FILE_BYTES = 50_000_000;
const OFFICE = "application/vnd.openxmlformats-officedocument";

/** "Images and vision" and "File inputs" in OpenAI's guides. */
const OPENAI: FileTable = {
  image: { types: USUAL_IMAGES, sources: ["base64", "url", "id"], maxBytes: MAX_IMAGE_BYTES },
  pdf: {
    sources: ["base64", "url", "id"],
    maxBytes: MAX_FILE_BYTES,
    models: ANY_MODEL,
    withImages: true,
  },
  text: { sources: ["url", "id"] },
  document: {
    types: [
      `${OFFICE}.wordprocessingml.document`,
      `${OFFICE}.presentationml.presentation`,
      `${OFFICE}.spreadsheetml.sheet`,
      "application/msword",
      "application/vnd.ms-powerpoint",
      "application/vnd.ms-excel",
      "application/vnd.oasis.opendocument.text",
      "application/rtf",
    ],
    sources: ["base64", "url", "id"],
    maxBytes: MAX_FILE_BYTES,
  },
};

/** Azure documents PDF alone, with its contents or uploaded. */
const AZURE: FileTable = {
  image: { types: USUAL_IMAGES, sources: ["base64", "url"], maxBytes: MAX_IMAGE_BYTES },
  pdf: { sources: ["base64", "id"], maxBytes: MAX_FILE_BYTES, models: ANY_MODEL, withImages: true },
};

/** "Image understanding" and "Files" in the documentation of xAI: contents of files are not in requests. */
const XAI: FileTable = {
  image: {
    types: ["image/png", "image/jpeg"],
    sources: ["base64", "url"],
    maxBytes: MAX_IMAGE_BYTES,
  },
  pdf: { sources: ["url", "id"], models: ANY_MODEL },
  text: { sources: ["url", "id"] },
};

/** What other services with this format take is not known beyond images. */
const OTHERS: FileTable = {
  image: { types: USUAL_IMAGES, sources: ["base64", "url"], maxBytes: MAX_IMAGE_BYTES },
  pdf: { sources: ["base64", "url"], maxBytes: MAX_FILE_BYTES },
};

export const FILES: FormatFiles = (_, { id }) => {
  if (id === "openai") return OPENAI;
  if (id === "xai") return XAI;
  return id === "azure-openai-responses" ? AZURE : OTHERS;
};
