import type { FileContent, Model } from "../messages/messages.ts";
import { resolveService, type ServicePreset } from "./services/presets.ts";
import { refuseFile } from "./files/prepare.ts";
import type { FileTable, FormatFiles } from "./files/table.ts";

const TABLES: Readonly<Record<string, () => Promise<{ FILES: FormatFiles }>>> = {
  "anthropic-messages": () => import("./anthropic-messages/files.ts"),
  "anthropic-vertex": () => import("./anthropic-vertex/files.ts"),
  "bedrock-converse-stream": () => import("./bedrock-converse-stream/files.ts"),
  "bedrock-invoke-stream": () => import("./bedrock-invoke-stream/files.ts"),
  "google-generative-ai": () => import("./google-generative-ai/files.ts"),
  ollama: () => import("./ollama/files.ts"),
  "openai-completions": () => import("./openai-completions/files.ts"),
  "openai-responses": () => import("./openai-responses/files.ts"),
};

/** Of a format that is not known here: what `input` of the model says. */
const BY_INPUT: FileTable = {
  image: { sources: ["base64"] },
  pdf: { sources: ["base64"] },
  audio: { sources: ["base64"] },
  video: { sources: ["base64"] },
};

/**
 * Why a request to a model cannot have a file, such as `this model reads no PDF`; nothing if it can. For
 * programs that decide whether to make a file of something before they send it.
 */
export async function explainUnsendable(
  file: FileContent,
  model: Model,
  services?: readonly ServicePreset[],
): Promise<string | undefined> {
  const service = resolveService(model, services);
  const table = (await TABLES[model.api]?.())?.FILES(model, service) ?? BY_INPUT;
  return refuseFile(file, table, { model, service });
}
