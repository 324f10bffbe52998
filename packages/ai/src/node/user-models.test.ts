import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { UserModelsError } from "../models/user-models.ts";
import { loadUserModels } from "./user-models.ts";

function written(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "gyre-models-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "models.json");
  writeFileSync(path, text);
  return path;
}

it("reads a file, also one with a byte order mark", () => {
  const path = written('\uFEFF{ "models": [{ "provider": "ollama", "id": "m" }] }\n');
  expect(loadUserModels(path)).toEqual({
    source: path,
    models: [{ provider: "ollama", id: "m" }],
    services: {},
  });
});

it("a file that is missing has no models", () => {
  const path = join(tmpdir(), "gyre-no-such-folder", "models.json");
  expect(loadUserModels(path)).toEqual({ source: path, models: [], services: {} });
});

it("what cannot be read is an error", () => {
  expect(() => loadUserModels(tmpdir())).toThrow("EISDIR");
});

it.each([
  ['{\n  "models": [}\n', "line 2, column 14"],
  ["", "line 1, column 1"],
  ['{ "models": []', "line 1, column 15"],
  ["{ models: [] }", "line 1, column 3"],
])("says where %j is no JSON", (text, place) => {
  const path = written(text);
  expect(() => loadUserModels(path)).toThrow(UserModelsError);
  expect(() => loadUserModels(path)).toThrow(`${path}: invalid JSON at ${place}: `);
});

it("shows nothing of a file that is no JSON", () => {
  const path = written('{ "services": { "a": { "headers": { "authorization": "secret" x } } } }');
  let message = "";
  try {
    loadUserModels(path);
  } catch (error) {
    message = String(error);
  }
  expect(message).toContain("invalid JSON");
  expect(message).not.toContain("secret");
});

it("says which file has models that are not right", () => {
  const path = written('{ "models": [{ "id": "m" }] }');
  expect(() => loadUserModels(path)).toThrow(`${path}: models[0].provider is missing`);
});
