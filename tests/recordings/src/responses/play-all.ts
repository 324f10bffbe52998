import { play } from "./ask.ts";
import { differences } from "./compare.ts";
import type { Case, Recordings } from "./manifest.ts";
import { playMcp } from "./plain-sse.ts";
import { serveRecordings } from "./serve.ts";

export interface Result {
  name: string;
  problems: string[];
}

/** Every recording with `only` in its id through the real client, over loopback. */
export async function playAll(recordings: Recordings, only = ""): Promise<Result[]> {
  const server = await serveRecordings(recordings);
  const results: Result[] = [];
  for (const one of recordings.cases.filter(({ id }) => id.includes(only))) {
    try {
      results.push({ name: one.id, problems: await findProblems(one, server.url(one)) });
    } catch (error) {
      results.push({ name: one.id, problems: [`threw ${String(error)}`] });
    }
  }
  await server.close();
  return results;
}

async function findProblems(one: Case, url: string): Promise<string[]> {
  if (one.api === "mcp") return playMcp(one, url);
  const { message } = await play(one, url);
  return differences(one, message);
}
