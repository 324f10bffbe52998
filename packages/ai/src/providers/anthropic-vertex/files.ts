import { FILES as ANTHROPIC } from "../anthropic-messages/files.ts";
import { ENCODED_IMAGE_BYTES, type FileRule, type FormatFiles } from "../files/table.ts";

/** As at Anthropic, but for addresses and ids: Google Cloud fetches nothing, and keeps no files for Claude. */
export const FILES: FormatFiles = (model, service) => {
  const { image, pdf, text } = ANTHROPIC(model, service);
  return {
    ...(image && { image: { ...inRequest(image), maxBytes: ENCODED_IMAGE_BYTES } }),
    ...(pdf && { pdf: inRequest(pdf) }),
    ...(text && { text: inRequest(text) }),
  };
};

/** Addresses do not matter where no source is one. */
function inRequest(rule: FileRule): FileRule {
  return { ...rule, sources: ["base64"] };
}
