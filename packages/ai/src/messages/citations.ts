import { toRecord } from "../common/records.ts";
import type { Citation } from "./messages.ts";

/**
 * The citations of a text in the forms that services have: of Anthropic, of OpenAI, of those that
 * repeat OpenAI's chat format, and of Amazon Bedrock. What names no source is left out.
 */
export function readCitations(raw: readonly unknown[]): Citation[] {
  return raw.flatMap((one) => {
    const given = toRecord(one);
    const fields = { ...given, ...toRecord(given["url_citation"]) };
    const citation: Record<string, unknown> = {};
    const put = (name: keyof Citation, type: "string" | "number", ...keys: string[]): void => {
      const found = keys.map((key) => fields[key]).find((value) => typeof value === type);
      if (found !== undefined && found !== "") citation[name] = found;
    };
    Object.assign(fields, toRecord(toRecord(fields["location"])["web"]));
    put("url", "string", "url", "source");
    put("title", "string", "title", "document_title", "filename");
    put("fileId", "string", "file_id");
    if (Object.keys(citation).length === 0) return [];
    put("text", "string", "cited_text", "content");
    put("page", "number", "start_page_number");
    put("start", "number", "start_index");
    put("end", "number", "end_index");
    return [citation];
  });
}
