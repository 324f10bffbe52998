import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";

/**
 * Writes packages/ai/src/messages/names.ts: the names of the models that are known, for editors.
 *
 *     node scripts/release/model-names.mjs           write the file, of the catalog as it is built
 *     node scripts/release/model-names.mjs --check   fail where the file is not what would be written
 */
const FILE = fileURLToPath(new URL("../../packages/ai/src/messages/names.ts", import.meta.url));

/**
 * @param {readonly { provider: string, id: string }[]} models
 * @param {readonly { id: string, api: string }[]} services
 */
export function namesSource(models, services) {
  /** @param {Iterable<string>} names */
  const union = (names) =>
    [...new Set(names)].map((name) => `\n  | ${JSON.stringify(name)}`).join("");
  return `// Written by scripts/release/model-names.mjs; do not edit.

/** A service that is known, or the name of another. */
export type ServiceName =${union(services.map(({ id }) => id))}
  | (string & {});

/** An API format that this package has, or the name of another. */
export type ApiName =${union(services.map(({ api }) => api))}
  | (string & {});

/** The models of the catalog, as provider/id. */
export type KnownModelName =${union(models.map(({ provider, id }) => `${provider}/${id}`))};

/** The name of a model: provider/id, or a part of it that fits one model. */
export type ModelName = KnownModelName | (string & {});
`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { catalog } = await import("../../packages/ai/dist/models/index.js");
  const { SERVICES } = await import("../../packages/ai/dist/providers/services/presets.js");
  const source = namesSource(catalog(), SERVICES);
  if (!process.argv.includes("--check")) writeFileSync(FILE, source);
  else if (readFileSync(FILE, "utf8") !== source) {
    console.error(
      "packages/ai/src/messages/names.ts is old. Run: node scripts/release/model-names.mjs",
    );
    process.exitCode = 1;
  }
}
