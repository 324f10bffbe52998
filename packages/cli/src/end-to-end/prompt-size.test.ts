import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { afterAll, beforeAll, expect, it } from "vitest";
import { buildProgram, type Program } from "../testing/program.ts";
import { scriptedService, type ServiceRequest } from "../testing/scripted-service.ts";

/** The system prompt and the schemas of the tools, as they are sent: every request begins with them. */
const MAX_TOKENS = 1_400;
/** Of each request after the first, what the service can take from its cache. */
const MIN_SHARE = 0.97;

let program: Program;
beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());

async function ask(words: readonly string[], home: string): Promise<ServiceRequest[]> {
  const service = await scriptedService([
    { say: [{ call: "read", arguments: { path: "long.txt" } }] },
    { say: [{ call: "grep", arguments: { pattern: "line 7" } }] },
    { say: "Done." },
  ]);
  try {
    return (await program.gyre(["-p", ...words, "--quiet"], { service, home })).requests;
  } finally {
    await service.close();
  }
}

async function makeHome(): Promise<string> {
  const home = await program.makeHome();
  mkdirSync(join(home, "work"), { recursive: true });
  const lines = Array.from({ length: 400 }, (_, nth) => `line ${nth}`);
  writeFileSync(join(home, "work", "long.txt"), lines.join("\n"));
  return home;
}

it(`the system prompt and all tools of gyre are at most ${MAX_TOKENS} tokens`, async () => {
  const [request] = await ask(["Look."], await makeHome());
  const { system, tools } = request?.body ?? {};
  const named = Array.isArray(tools) ? tools : [];
  const sizes = named.map((tool: { name: string }) => [tool.name, count(tool)] as const);
  const own = count(system);
  const sum = own + sizes.reduce((all, [, tokens]) => all + tokens, 0);
  expect(named.map((tool: { name: string }) => tool.name)).toContain("task");
  const each = [`system ${own}`, ...sizes.map(([name, tokens]) => `${name} ${tokens}`)].join(", ");
  expect(sum, each).toBeLessThanOrEqual(MAX_TOKENS);
});

it("each request begins as the one before it", async () => {
  const home = await makeHome();
  const requests = [...(await ask(["Look."], home)), ...(await ask(["-c", "Again."], home))];
  expect(requests).toHaveLength(6);
  for (const [nth, { body }] of requests.entries()) {
    const before = requests[nth - 1]?.body;
    if (!before) continue;
    const earlier = flatten(before);
    const now = flatten(body);
    let same = 0;
    while (same < earlier.length && earlier[same] === now[same]) same++;
    expect(same / earlier.length, `request ${nth + 1}`).toBeGreaterThanOrEqual(MIN_SHARE);
  }
});

/** Without the marks of what is to be cached, which move on. */
function flatten({ system, tools, messages }: ServiceRequest["body"]): string {
  const text = JSON.stringify([tools, system, messages], (key, value: unknown) =>
    key === "cache_control" ? undefined : value,
  );
  return text.slice(0, -2);
}

function count(value: unknown): number {
  const text = JSON.stringify(value, (key, each: unknown) =>
    key === "cache_control" ? undefined : each,
  );
  return encode(text ?? "").length;
}
