import type { ResponseCreateParamsStreaming } from "openai/resources/responses/responses";
import { isRecord, toRecord } from "../../common/records.ts";
import type { Fetch } from "../http/fetch.ts";
import { parseJsonOr } from "../http/json.ts";
import { readRejection } from "../options/rejection.ts";
import type { Draft } from "../options/table.ts";
import { formatEach } from "./request.ts";
import { findContinuation, isInConversation } from "./state.ts";

type Part = Partial<ResponseCreateParamsStreaming>;

/** Goes on from a response that the service has kept, and sends only what is new since. */
export function continueResponse(id: string, draft: Draft): Part {
  if (typeof id !== "string" || id === "") throw new TypeError('it is "auto", or an id.');
  const { context, model } = draft.request;
  const found = findContinuation(formatEach(context.messages, model), model);
  const before: Part = id === "auto" ? {} : { previous_response_id: id };
  if (!found) return { store: true, ...before };
  const { input } = draft.body;
  // What is lost at the service is here: the whole transcript is sent in its place.
  draft.wrapFetch((fetch) => fetchWithFallback(fetch, { ...before, input }));
  return { store: true, previous_response_id: found.responseId, input: found.input };
}

/** Adds to a conversation that the service keeps what it does not have yet. */
export function continueConversation(id: string, draft: Draft): Part {
  if (typeof id !== "string" || id === "") throw new TypeError("it is the id of a conversation.");
  const { context, model } = draft.request;
  const groups = formatEach(context.messages, model);
  const found = findContinuation(groups, model, id);
  if (!found && groups.some((group) => isInConversation(group, id))) {
    throw new TypeError(
      `the transcript was changed since the last answer in "${id}", which the service has as it was. Use another conversation, or previousResponseId.`,
    );
  }
  return { store: true, conversation: id, ...(found && { input: found.input }) };
}

const LOST = "previous_response_not_found";

/** Asks again with other fields where the service does not know the response of before. */
function fetchWithFallback(fetch: Fetch, fields: Readonly<Record<string, unknown>>): Fetch {
  return async (url, init) => {
    const response = await fetch(url, init);
    const sent = init.method === "POST" ? parseJsonOr(init.body ?? "", undefined) : undefined;
    if (response.ok || !isRecord(sent) || !("previous_response_id" in sent)) return response;
    const { rejected, text } = await readRejection(response);
    if (!isLost(text)) return rejected;
    const { previous_response_id: _, ...rest } = sent;
    return fetch(url, { ...init, body: JSON.stringify({ ...rest, ...fields }) });
  };
}

function isLost(text: string): boolean {
  const { code, param } = toRecord(toRecord(parseJsonOr(text, {}))["error"]);
  return code === LOST || param === "previous_response_id";
}
