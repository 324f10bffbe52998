import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { Choice, PanelQuestion } from "../ui/ui.ts";
import type { LocalServer } from "./local-servers.ts";
import {
  askForModel,
  hasModel,
  howToSetKey,
  listKeyServices,
  type ModelChoice,
  noKeyLines,
  noKeyQuestion,
  storeKey,
} from "./no-key.ts";

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function emptyEnvironment(): { XDG_CONFIG_HOME: string } {
  const folder = mkdtempSync(join(tmpdir(), "gyre-no-key-"));
  folders.push(folder);
  return { XDG_CONFIG_HOME: folder };
}

const OLLAMA: LocalServer = {
  service: "ollama",
  name: "Ollama",
  place: "127.0.0.1:11434",
  models: ["ollama/llama3.1", "ollama/qwen3", "ollama/a", "ollama/b"],
  variables: {},
};
const LLAMACPP: LocalServer = {
  service: "llamacpp",
  name: "llama.cpp",
  place: "[::1]:8080",
  models: ["llamacpp/m.gguf"],
  variables: { LLAMACPP_BASE_URL: "http://[::1]:8080/v1" },
};

/** Answers questions by the beginning of a label, one after the other; undefined is Esc. */
async function ask(
  labels: readonly (string | undefined)[],
  more: { servers?: LocalServer[]; secret?: string; env?: { XDG_CONFIG_HOME: string } } = {},
): Promise<{ way: ModelChoice; messages: string[]; warned: string[]; titles: string[] }> {
  const messages: string[] = [];
  const warned: string[] = [];
  const titles: string[] = [];
  const left = [...labels];
  const way = await askForModel({
    env: more.env ?? emptyEnvironment(),
    servers: more.servers ?? [],
    askSecret: async (title) => {
      titles.push(title);
      return more.secret;
    },
    ui: {
      say: (text) => void messages.push(text),
      warn: (text) => void warned.push(text),
      async choose<T>({ choices, title }: PanelQuestion<T>): Promise<T | undefined> {
        titles.push(title);
        if (left.length === 0) throw new Error(`There is no answer to "${title}".`);
        const label = left.shift();
        if (label === undefined) return undefined;
        const choice: Choice<T> | undefined = choices.find((one) => one.label.startsWith(label));
        if (!choice) throw new Error(`There is no "${label}" in "${title}".`);
        return choice.value;
      },
    },
  });
  return { way, messages, warned, titles };
}

describe("whether there is a model", () => {
  it("is no without a key, a variable or a setting", async () => {
    expect(await hasModel({}, emptyEnvironment())).toBe(false);
  });

  it("is yes where one is set, or a service has a key", async () => {
    const env = emptyEnvironment();
    expect(await hasModel({ model: "ollama/llama3.1" }, env)).toBe(true);
    expect(await hasModel({}, { ...env, OPENAI_API_KEY: "k" })).toBe(true);
  });
});

describe("without a model", () => {
  it("three lines say so", () => {
    expect(noKeyLines([])).toHaveLength(3);
    expect(noKeyLines([])[0]).toBe("There is no model to ask yet: no service has a key here.");
    expect(noKeyLines([OLLAMA])[1]).toBe("Ollama answers on this machine, and needs none.");
  });

  it("there are four ways on, and one more for each local server", () => {
    const { choices } = noKeyQuestion([OLLAMA, LLAMACPP]);
    expect(choices.map(({ detail, label }) => [label, detail])).toEqual([
      ["Use Ollama at 127.0.0.1:11434", "llama3.1, qwen3, a …"],
      ["Use llama.cpp at [::1]:8080", "m.gguf"],
      ["Try the scripted model", "no key, no network"],
      ["Store a key", "as gyre login does"],
      ["How to set a key", undefined],
      ["Leave", undefined],
    ]);
    expect(noKeyQuestion([]).choices).toHaveLength(4);
  });

  it("the scripted model is labeled as what it is", async () => {
    const { messages, way } = await ask(["Try"]);
    expect(way).toEqual({ type: "scripted" });
    expect(messages.at(-1)).toBe(
      "This is a scripted model: it plays a small part, no service is asked.",
    );
  });

  it("a server with one model is used at once, at its place", async () => {
    const { way } = await ask(["Use llama.cpp"], { servers: [OLLAMA, LLAMACPP] });
    const { variables } = LLAMACPP;
    expect(way).toEqual({ type: "model", name: "llamacpp/m.gguf", variables });
  });

  it("a server with several is asked about", async () => {
    const { way } = await ask(["Use Ollama", "qwen3"], { servers: [OLLAMA] });
    expect(way).toEqual({ type: "model", name: "ollama/qwen3", variables: {} });
  });

  it("a key that is typed is stored as gyre login does, and a model is there", async () => {
    const env = emptyEnvironment();
    const { messages, way } = await ask(["Store", "Anthropic"], { secret: " sk-typed\n", env });
    expect(way).toEqual({ type: "key" });
    const file = join(env.XDG_CONFIG_HOME, "gyre", "keys.json");
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ anthropic: "sk-typed" });
    expect(statSync(file).mode & 0o077).toBe(0);
    expect(messages.at(-1)).toContain(`stored in ${file}`);
    expect(messages.join()).not.toContain("sk-typed");
    expect(await hasModel({}, env)).toBe(true);
  });

  it("an invalid key is reported without showing it, and asked again", async () => {
    const { warned, way } = await ask(["Store", "Anthropic", "Leave"], { secret: "two words" });
    expect(way).toEqual({ type: "leave" });
    expect(warned).toHaveLength(1);
    expect(warned.join()).not.toContain("two words");
  });

  it("how to set a key is explained, and asked again", async () => {
    const { messages, way } = await ask(["How", "Leave"]);
    expect(way).toEqual({ type: "leave" });
    expect(messages.at(-1)).toContain("export ANTHROPIC_API_KEY=");
    expect(messages.at(-1)).toContain("gyre login anthropic");
  });

  it("Esc leads back to the first question, and from there out", async () => {
    const { titles, way } = await ask(["Store", undefined, "Use Ollama", undefined, undefined], {
      servers: [OLLAMA],
    });
    expect(way).toEqual({ type: "leave" });
    expect(titles).toEqual([
      "How do you want to begin?",
      "A key for which service?",
      "How do you want to begin?",
      "Which model of Ollama?",
      "How do you want to begin?",
    ]);
  });

  it("an empty key stores nothing", async () => {
    const env = emptyEnvironment();
    await ask(["Store", "Anthropic", "Leave"], { secret: "  ", env });
    expect(await hasModel({}, env)).toBe(false);
  });
});

describe("services", () => {
  it("that are offered have a model that is taken without being named", async () => {
    for (const { id, variables } of await listKeyServices()) {
      expect(await hasModel({}, { ...emptyEnvironment(), [variables[0] ?? ""]: "k" }), id).toBe(
        true,
      );
    }
  });

  it("name a variable that takes precedence over a stored key", async () => {
    const env = { ...emptyEnvironment(), OPENAI_API_KEY: "other" };
    const service = (await listKeyServices()).find(({ id }) => id === "openai");
    if (!service) throw new Error("There is no openai.");
    expect(await storeKey(service, "sk-1", env)).toMatch(
      /OPENAI_API_KEY is set .* precedence over it\.$/,
    );
  });

  it("are named with the variables that are read", async () => {
    const text = howToSetKey(await listKeyServices());
    const names = [...text.matchAll(/export (\w+)=/g)].map(([, name]) => name);
    expect(names).toEqual([
      "ANTHROPIC_API_KEY",
      "OPENAI_API_KEY",
      expect.stringContaining("_API_KEY"),
      "OPENROUTER_API_KEY",
    ]);
  });
});
