import type { FetchedResponse } from "../../client/fetch.ts";

/** Reads the body of an error response. `rejected` is the same response, with its body unread. */
export async function readRejection(
  response: FetchedResponse,
): Promise<{ rejected: FetchedResponse; text: string }> {
  const { headers, ok, status, type } = response;
  const text = await new Response(response.body).text();
  const { body } = new Response(text);
  return { rejected: { headers, ok, status, body, ...(type !== undefined && { type }) }, text };
}
