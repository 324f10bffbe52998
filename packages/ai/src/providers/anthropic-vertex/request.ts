import { writeRequest as writeMessagesRequest } from "../anthropic-messages/request.ts";
import type { ApiRequest, RequestContext } from "../http/format.ts";
import { authHeaders } from "../http/headers.ts";
import { joinUrl } from "../http/url.ts";

const VERSION = "vertex-2023-10-16";

/** One request to the `streamRawPredict` operation: the model is in the address, the version in the body. */
export function writeRequest(request: RequestContext): ApiRequest {
  const { body, headers, ...rest } = writeMessagesRequest(request);
  const { model: id, ...own } = body;
  const beta = headers["anthropic-beta"];
  return {
    ...rest,
    url: joinUrl(
      request.baseUrl,
      `/models/${encodeURIComponent(String(id)).replace("%40", "@")}:streamRawPredict`,
    ),
    headers: {
      ...(beta !== undefined && { "anthropic-beta": beta }),
      ...authHeaders(request, "bearer"),
    },
    body: { anthropic_version: VERSION, ...own },
  };
}
