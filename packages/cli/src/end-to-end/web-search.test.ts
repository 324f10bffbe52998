import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { buildProgram, type Ended, type Program } from "../testing/program.ts";
import { type Answer, scriptedService } from "../testing/scripted-service.ts";

// The program as a process, which searches the web by the service of its model, or by a search engine.

let program: Program;
beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());

async function ask(
  answers: readonly Answer[],
  env: Record<string, string>,
  args: readonly string[] = ["--mode", "full", "--sandbox", "none"],
): Promise<Ended> {
  const service = await scriptedService(answers);
  try {
    return await program.gyre(["-p", "How old is tea?", "--quiet", ...args], { service, env });
  } finally {
    await service.close();
  }
}

const SEARCH: Answer = { say: [{ call: "web_search", arguments: { query: "age of tea" } }] };
const listNames = (tools: unknown): unknown[] =>
  Array.isArray(tools) ? tools.map((tool: { name: string }) => tool.name) : [];

it("gyre searches by the service of its model where webSearch says so, and has no such tool otherwise", async () => {
  const answers = [SEARCH, { say: "5,000 years, says tea.example." }, { say: "Very old." }];
  const { requests, stdout } = await ask(answers, { GYRE_WEB_SEARCH: "service" });
  expect(stdout).toBe("Very old.\n");
  expect(listNames(requests[0]?.body["tools"])).toContain("web_search");
  expect(requests[1]?.body["tools"]).toEqual([
    { type: "web_search_20250305", name: "web_search", max_uses: 3 },
  ]);
  expect(requests[1]?.text).toContain("age of tea");
  expect(requests[2]?.text).toContain("5,000 years, says tea.example.");
  const plain = await ask([{ say: "Old." }], {});
  expect(listNames(plain.requests[0]?.body["tools"])).not.toContain("web_search");
});

it("a search engine answers with its key, and a search is asked about as the network is", async () => {
  const keys: unknown[] = [];
  const engine = createServer(({ headers, url }, response) => {
    keys.push([headers["x-subscription-token"], url]);
    const results = [{ url: "https://tea.example/", title: "Tea", description: "5,000 years" }];
    response.end(JSON.stringify({ web: { results } }));
  });
  await new Promise<void>((resolve) => engine.listen(0, "127.0.0.1", resolve));
  const { port } = engine.address() as AddressInfo;
  const env = {
    GYRE_WEB_SEARCH: `http://127.0.0.1:${port}/search?q={query}`,
    GYRE_WEB_SEARCH_HEADER: "X-Subscription-Token: abc",
  };
  try {
    const { requests } = await ask([SEARCH, { say: "Old." }], env);
    expect(keys).toEqual([["abc", "/search?q=age%20of%20tea"]]);
    expect(requests[1]?.text).toContain("5,000 years");
    // Without a person who could be asked it is denied.
    const asked = await ask([SEARCH, { say: "Old." }], env, ["--mode", "ask"]);
    expect(keys).toHaveLength(1);
    expect(asked.requests[1]?.text).not.toContain("5,000 years");
  } finally {
    await new Promise((resolve) => engine.close(resolve));
  }
});
