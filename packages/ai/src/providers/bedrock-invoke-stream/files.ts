import type { FormatFiles } from "../files/table.ts";
import { FILES as CONVERSE } from "../bedrock-converse-stream/files.ts";

/** This operation takes no documents ("API restrictions" in the user guide); Converse does. */
export const FILES: FormatFiles = (model, service) => {
  const { image, video } = CONVERSE(model, service);
  return { ...(image && { image }), ...(video && { video }) };
};
