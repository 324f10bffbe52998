import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { manualClock } from "@gyre/ai/testing";
import type { PluginApi, PluginRegistry } from "@gyre/tools";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadPlugins, PLUGIN_TIMEOUT_MS, type PluginOptions } from "./plugins.ts";
import { findPlugin } from "../settings/plugin-entry.ts";

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "gyre-plugin-")));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

async function load(paths: readonly string[], options: Partial<PluginOptions> = {}) {
  const warnings: string[] = [];
  const loaded = await loadPlugins({
    paths,
    cwd: folder,
    version: "1.2.3",
    settings: { model: "sonnet", tools: ["read"] },
    reservedCommands: ["model"],
    warn: (text) => void warnings.push(text),
    ...options,
  });
  return { ...loaded, warnings, names: loaded.tools.map(({ name }) => name) };
}

type Register = (registry: PluginRegistry, api: PluginApi) => void | Promise<void>;

/** As if the module at a path were this function. */
function loadFunctions(plugins: Record<string, Register>, options: Partial<PluginOptions> = {}) {
  const paths = Object.keys(plugins).map((name) => write(`${name}.mjs`, ""));
  return load(paths, {
    load: async (url) => ({ registerTools: plugins[url.replace(/^.*\/|\.mjs$/g, "")] }),
    ...options,
  });
}

const tool = (name: string) => ({
  name,
  description: `Does ${name}.`,
  parameters: { type: "object", properties: {} },
  execute: () => name,
});

const TOOL = (name: string): string =>
  `{ name: "${name}", description: "x", parameters: { type: "object" }, execute: () => "x" }`;

describe("a plugin", () => {
  it("is a module that exports registerTools, which may take its time", async () => {
    const path = write(
      "mine.mjs",
      `export async function registerTools(registry, api) {
        await null;
        registry.register(${TOOL("one")});
        registry.register(api.defineTool(${TOOL("two")}));
        api.log("hello from " + api.version);
      }`,
    );
    const { names, warnings, plugins } = await load([path, path]);
    expect(names).toEqual(["one", "two"]);
    expect(warnings).toEqual(["mine: hello from 1.2.3"]);
    expect(plugins).toHaveLength(1);
  });

  it("may be the default export, and a package", async () => {
    write(
      "node_modules/@me/plugin/lib/main.js",
      `export default { registerTools(registry) {
      registry.register(${TOOL("packed")}) } }`,
    );
    write(
      "node_modules/@me/plugin/package.json",
      JSON.stringify({
        name: "@me/plugin",
        type: "module",
        exports: { ".": { types: "./x.d.ts", browser: "./no.js", import: "./lib/main.js" } },
      }),
    );
    // From a folder below, as Node looks for it.
    const { names, plugins } = await load([join(folder, ".gyre/node_modules/@me/plugin")]);
    expect(names).toEqual(["packed"]);
    expect(plugins[0]?.name).toBe("@me/plugin");
  });

  it("gets settings that it cannot change, and the folder", async () => {
    let seen: PluginApi | undefined;
    await loadFunctions({ a: (_registry, api) => void (seen = api) });
    expect(seen).toMatchObject({ cwd: folder, version: "1.2.3", settings: { model: "sonnet" } });
    expect(Object.isFrozen(seen?.settings["tools"])).toBe(true);
  });

  it("registers middleware, commands, hooks and listeners", async () => {
    const { plugins, commands, warnings } = await loadFunctions({
      a: (_registry, api) => {
        api.middleware({ tool: (_call, next) => next() });
        api.command({ name: "hello", about: "say hello", run: (rest) => `Hello ${rest}` });
        api.hook("Stop", () => ({ block: "more" }));
        api.on("turn_end", () => {});
      },
    });
    expect(warnings).toEqual([]);
    expect(plugins[0]).toMatchObject({
      middleware: [{}],
      hooks: [{ event: "Stop" }],
      listeners: [{ type: "turn_end" }],
    });
    expect(await commands.run("hello", "you")).toBe("Hello you");
  });
});

describe("a plugin that is left out takes all that it had with it; the others work", () => {
  const good: Register = (registry) => registry.register(tool("good"));
  const cases: [string, Register, string][] = [
    [
      "throws",
      (registry) => {
        registry.register(tool("half"));
        throw new Error("It is broken.");
      },
      "It is broken.",
    ],
    ["rejects", () => Promise.reject(new Error("It is not well.")), "It is not well."],
    ["has an invalid name", (registry) => registry.register(tool("a b")), 'not "a b".'],
    ["has a name of ours", (registry) => registry.register(tool("shell")), '"shell" is taken'],
    ["has a name of MCP", (registry) => registry.register(tool("mcp__a__b")), "is taken by the"],
    ["has a name of another", (registry) => registry.register(tool("first")), '"first" already'],
    [
      "has a name twice",
      (registry) => {
        registry.register(tool("half"));
        registry.register(tool("half"));
      },
      'the tool "half"',
    ],
    [
      "has no description",
      (registry) => registry.register({ ...tool("half"), description: "" }),
      'The tool "half" has no description.',
    ],
    [
      "has parameters that cannot be sent",
      (registry) => {
        const round: Record<string, unknown> = {};
        round["items"] = round;
        const parameters = { type: "object", properties: { round } };
        registry.register({ ...tool("half"), parameters });
      },
      "circular",
    ],
    [
      "has an invalid schema",
      (registry) => registry.register({ ...tool("half"), parameters: { type: "string" } }),
      "half",
    ],
    [
      "catches what the registry throws",
      (registry) => {
        registry.register(tool("half"));
        try {
          registry.register(tool("read"));
        } catch {
          // It thinks that all is well.
        }
      },
      'The name "read" is taken',
    ],
    [
      "takes a command of ours",
      (_registry, api) => api.command({ name: "model", about: "x", run: () => "" }),
      'There is a command "/model" already.',
    ],
    [
      "has a command without a word about it",
      (_registry, api) => api.command({ name: "x", about: " ", run: () => "" }),
      'The command "/x" has no line about it.',
    ],
    [
      "has middleware that does nothing",
      (_registry, api) => api.middleware({}),
      "Middleware has one of the functions",
    ],
  ];
  it.each(cases)("%s", async (_what, bad, words) => {
    const first: Register = (registry) => registry.register(tool("first"));
    const { names, warnings, plugins } = await loadFunctions({ first, bad, good });
    expect(names).toEqual(["first", "good"]);
    expect(plugins).toHaveLength(2);
    expect(warnings).toEqual([
      expect.stringContaining(`The plugin ${join(folder, "bad.mjs")} is left out: `),
    ]);
    expect(warnings[0]).toContain(words);
  });

  it("hangs", async () => {
    const clock = manualClock();
    const bad: Register = (registry) => {
      registry.register(tool("half"));
      return new Promise(() => {});
    };
    const loading = loadFunctions({ bad, good }, { clock });
    await expect.poll(() => clock.pending).toBe(1);
    await clock.advance(PLUGIN_TIMEOUT_MS);
    const { names, warnings } = await loading;
    expect(names).toEqual(["good"]);
    expect(warnings[0]).toContain("it had not settled after 10 s");
  });

  it("is not there, is no module, or exports something else", async () => {
    const paths = [
      join(folder, "missing.mjs"),
      write("broken.mjs", "export const = 1;"),
      write("empty.mjs", "export const x = 1;"),
      join(folder, "node_modules/absent"),
    ];
    const { names, warnings } = await load([
      ...paths,
      write("ok.mjs", "export function registerTools() {}"),
    ]);
    expect(names).toEqual([]);
    expect(warnings).toHaveLength(4);
    expect(warnings[0]).toContain(`there is no file ${paths[0]}`);
    expect(warnings[2]).toContain("it exports no function registerTools");
    expect(warnings[3]).toContain(`there is no package "absent" in ${folder} or above it`);
  });
});

it("what comes too late is refused, and does nothing", async () => {
  let late: (() => void) | undefined;
  const { tools } = await loadFunctions({
    a: (registry) => void (late = () => registry.register(tool("late"))),
  });
  expect(() => late?.()).toThrow("registry.register() was called too late");
  expect(tools).toEqual([]);
});

describe("TypeScript", () => {
  const isRun = Boolean((process.features as { typescript?: unknown }).typescript);
  it("is loaded where Node takes the types out, and refused by name elsewhere", async () => {
    const path = write(
      "typed.ts",
      `export function registerTools(registry: { register(tool: object): void }): void {
        registry.register(${TOOL("typed")});
      }`,
    );
    const { names, warnings } = await load([path]);
    expect(names).toEqual(isRun ? ["typed"] : []);
    expect(warnings).toEqual(
      isRun ? [] : [expect.stringContaining("it is TypeScript, which Node")],
    );
  });
});

describe("the entry of a package", () => {
  const entry = (manifest: object, subpath = ""): string => {
    write("node_modules/p/package.json", JSON.stringify({ name: "p", ...manifest }));
    for (const file of ["index.js", "main.js", "sub.js"]) write(`node_modules/p/${file}`, "");
    return findPlugin(join(folder, `node_modules/p${subpath}`)).file.replace(/^.*\/p\//, "");
  };

  it.each([
    [{}, "", "index.js"],
    [{ main: "main.js" }, "", "main.js"],
    [{ exports: "./main.js" }, "", "main.js"],
    [{ exports: { require: "./no.cjs", default: "./main.js" } }, "", "main.js"],
    [{ exports: { ".": { node: { import: "./main.js" } } } }, "", "main.js"],
    [{ exports: { ".": "./main.js", "./plugin": "./sub.js" } }, "/plugin", "sub.js"],
    [{}, "/sub.js", "sub.js"],
  ])("%j%s is %s", (manifest, subpath, file) => {
    expect(entry(manifest, subpath)).toBe(file);
  });

  it.each([
    [{ exports: { ".": { browser: "./main.js" } } }, "", "does not export anything to load"],
    [{ exports: { ".": "./main.js" } }, "/other", "does not export other"],
    [{ exports: "../outside.js" }, "", "does not export anything to load"],
    [{ main: "gone.js" }, "", "has no file gone.js"],
  ])("%j%s is refused", (manifest, subpath, words) => {
    expect(() => entry(manifest, subpath)).toThrow(words);
  });
});
