import { createParser } from "eventsource-parser";

/** What reading a stream takes at the least: fetch, a parser of the format, and JSON. */
export async function readBare(
  url: string,
  onEvent: (event: never) => void,
  signal?: AbortSignal,
): Promise<void> {
  const parser = createParser({
    onEvent({ data }) {
      if (data !== "[DONE]") onEvent(JSON.parse(data) as never);
    },
  });
  const init = { method: "POST", body: "{}", ...(signal && { signal }) };
  const response = await fetch(url, init);
  if (!response.body) throw new Error("The server sent no body.");
  const decoder = new TextDecoder();
  for await (const piece of response.body) parser.feed(decoder.decode(piece, { stream: true }));
}
