import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  addServer,
  readServers,
  removeServer,
  type ServerFile,
  ServerFileError,
} from "./server-file.ts";

let folder: string;
let file: ServerFile;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "gyre-servers-"));
  file = { path: join(folder, "sub", "config.json"), key: "mcp" };
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const content = (path = file.path): unknown => JSON.parse(readFileSync(path, "utf8"));

describe("a file with servers", () => {
  it("is made where it is missing, for its owner alone", () => {
    addServer(file, "tea", { url: "https://tea.example/mcp" });
    expect(content()).toEqual({ mcp: { tea: { url: "https://tea.example/mcp" } } });
    expect(statSync(file.path).mode & 0o777).toBe(0o600);
    expect(Object.keys(readServers(file))).toEqual(["tea"]);
  });

  it("keeps all else in it: other settings, their order, its indentation, its rights, its link", () => {
    const real = join(folder, "real.json");
    const path = join(folder, "link.json");
    const text =
      '{\n\t"model": "sonnet",\n\t"mcp": {\n\t\t"a": { "command": "a" }\n\t},\n\t"mode": "ask"\n}\n';
    writeFileSync(real, text);
    chmodSync(real, 0o640);
    symlinkSync(real, path);
    addServer({ path, key: "mcp" }, "b", { command: "b", args: ["-y"] });
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
    expect(statSync(real).mode & 0o777).toBe(0o640);
    expect(Object.keys(content(real) as object)).toEqual(["model", "mcp", "mode"]);
    expect(readFileSync(real, "utf8")).toContain('\n\t\t"b": {\n\t\t\t"command": "b"');
    expect(removeServer({ path, key: "mcp" }, "b")).toBe(true);
    expect(content(real)).toEqual(JSON.parse(text));
    expect(removeServer({ path, key: "mcp" }, "b")).toBe(false);
  });

  it.each([
    ["is not JSON", "{"],
    ["is a list", "[]"],
    ["has servers that are a list", '{"mcp":[]}'],
  ])("that %s stays as it is", (_what, text) => {
    const path = join(folder, "bad.json");
    writeFileSync(path, text);
    expect(() => addServer({ path, key: "mcp" }, "a", { command: "a" })).toThrow(ServerFileError);
    expect(() => removeServer({ path, key: "mcp" }, "a")).toThrow("fix it first");
    expect(readFileSync(path, "utf8")).toBe(text);
  });

  it("takes no server that could not be used, and none of a name that is there", () => {
    expect(() => addServer(file, "…", { command: "a" })).toThrow("needs a letter or a digit");
    expect(() => addServer(file, "a", { command: "" })).toThrow("needs a command");
    addServer(file, "a", { command: "a" });
    expect(() => addServer(file, "a", { command: "b" })).toThrow("gyre mcp remove a");
    expect(content()).toEqual({ mcp: { a: { command: "a" } } });
  });

  it("may have a server with the name of something that every object has", () => {
    expect(removeServer(file, "constructor")).toBe(false);
    addServer(file, "constructor", { command: "a" });
    expect(removeServer(file, "constructor")).toBe(true);
  });
});
