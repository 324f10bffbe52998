import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createInProcessClient } from "../client/registry.ts";
import { fakeService, sse, userSays } from "../testing/fake-service.ts";
import { createProviders, SERVICES } from "./index.ts";

const WIRES = createProviders()
  .list()
  .map(({ api }) => api);

/** The modules that a module loads as it is loaded itself, and those in turn. */
function loadedBy(file: string, found = new Set<string>()): Set<string> {
  const at = new URL(file, import.meta.url);
  if (found.has(at.href)) return found;
  found.add(at.href);
  const code = readFileSync(at, "utf8");
  for (const [, path = ""] of code.matchAll(
    /^(?:import|export) (?!type )[^;]*?from "(\.[^"]+)";/gms,
  )) {
    loadedBy(new URL(path, at).href, found);
  }
  return found;
}

describe("the wires of this package", () => {
  it("are all there, and each service speaks one of them", () => {
    expect(WIRES).toEqual([
      "anthropic-messages",
      "bedrock-converse-stream",
      "bedrock-invoke-stream",
      "google-generative-ai",
      "ollama",
      "openai-completions",
      "openai-responses",
    ]);
    for (const { api } of SERVICES) expect(WIRES).toContain(api);
  });

  // Bedrock's other operation is made of two of them.
  const alone = WIRES.filter((api) => api !== "bedrock-invoke-stream");
  it.each(alone)("%s loads nothing of the others", (api) => {
    const loaded = [...loadedBy(`./${api}/index.ts`)];
    for (const other of WIRES) {
      if (other !== api)
        expect(loaded.filter((file) => file.endsWith(`/${other}/index.ts`))).toEqual([]);
    }
    expect(loaded.some((file) => file.endsWith("/errors/response-error.ts"))).toBe(false);
  });

  it("are not loaded with the registry", () => {
    const loaded = [...loadedBy("./index.ts")];
    for (const api of WIRES) {
      expect(loaded.filter((file) => file.endsWith(`/${api}/index.ts`))).toEqual([]);
    }
  });

  it("are asked by name, the first time and again", async () => {
    const { fetch } = fakeService(
      sse({ choices: [{ delta: { content: "Hi" }, finish_reason: "stop" }] }, "[DONE]"),
    );
    const client = createInProcessClient(createProviders({ fetch }));
    const model = { id: "m", name: "M", api: "openai-completions", provider: "groq" };
    for (let time = 0; time < 2; time++) {
      const stream = await client.stream(model, { messages: [userSays("?")] }, { apiKey: "k" });
      expect(await stream.result()).toMatchObject({ content: [{ type: "text", text: "Hi" }] });
    }
  });
});
