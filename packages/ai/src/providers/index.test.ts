import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createInProcessClient } from "../client/registry.ts";
import { fakeService, sse, createPrompt } from "../testing/fake-service.ts";
import { createProviders, SERVICES } from "./index.ts";

const APIS = createProviders()
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

describe("the formats of this package", () => {
  it("are all folders that write requests, and each service uses one of them", () => {
    const folder = new URL(".", import.meta.url);
    const folders = readdirSync(folder).filter((name) =>
      existsSync(new URL(`${name}/request.ts`, folder)),
    );
    expect(folders.length).toBeGreaterThan(6);
    expect(APIS).toEqual(folders);
    for (const { api } of SERVICES) expect(APIS).toContain(api);
  });

  it("have a provider, a reader and a check of requests", () => {
    for (const api of APIS) {
      for (const file of ["index.ts", "reader.ts", "request-check.ts"]) {
        expect(existsSync(new URL(`${api}/${file}`, import.meta.url)), `${api}/${file}`).toBe(true);
      }
    }
  });

  // Bedrock's other operation uses two of them.
  const alone = APIS.filter((api) => api !== "bedrock-invoke-stream");
  it.each(alone)("%s loads nothing of the others", (api) => {
    const loaded = [...loadedBy(`./${api}/index.ts`)];
    for (const other of APIS) {
      if (other !== api)
        expect(loaded.filter((file) => file.endsWith(`/${other}/index.ts`))).toEqual([]);
    }
    expect(loaded.some((file) => file.endsWith("/errors/response-error.ts"))).toBe(false);
  });

  it("are not loaded with the registry", () => {
    const loaded = [...loadedBy("./index.ts")];
    for (const api of APIS) {
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
      const stream = await client.stream(model, { messages: [createPrompt("?")] }, { apiKey: "k" });
      expect(await stream.result()).toMatchObject({ content: [{ type: "text", text: "Hi" }] });
    }
  });
});
