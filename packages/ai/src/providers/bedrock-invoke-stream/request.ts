import { writeRequest as writeAnthropic } from "../anthropic-messages/request.ts";
import {
  addressRequest,
  writeRequest as writeConverse,
} from "../bedrock-converse-stream/request.ts";
import type { ApiRequest, RequestContext } from "../http/format.ts";

const OPERATION = "invoke-with-response-stream";
const CLAUDE_VERSION = "bedrock-2023-05-31";
const NOVA_SCHEMA = "messages-v1";

/** One request in the format of the model. */
export function writeRequest(request: RequestContext): ApiRequest {
  if (!request.model.id.includes("claude")) {
    // Nova marks what is to be cached in another way than Converse does.
    const options = { ...request.options, cacheRetention: "none" } as const;
    const { body } = writeConverse({ ...request, options });
    return addressRequest(request, OPERATION, { schemaVersion: NOVA_SCHEMA, ...body });
  }
  const { body, headers } = writeAnthropic(request);
  const { model: _, stream: __, ...own } = body;
  const beta = headers["anthropic-beta"];
  return addressRequest(request, OPERATION, {
    anthropic_version: CLAUDE_VERSION,
    ...(beta !== undefined && { anthropic_beta: [beta] }),
    ...own,
  });
}
