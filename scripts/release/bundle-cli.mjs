// The program as one folder: `node scripts/release/bundle-cli.mjs` writes packages/cli/bundle, from
// what was built; with --sources --into FOLDER another one, from the sources. --json prints
// what is in it.
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { rolldown } from "rolldown";
import { listPackages, packageName, readManifest } from "../shared/workspace.mjs";

/**
 * @typedef {{
 *   fileName: string, isEntry: boolean, bytes: number, moduleIds: string[],
 *   imports: string[], dynamicImports: string[],
 * }} BundledChunk `moduleIds`: the files that are in it, absolute
 */

const ENTRY = "gyre";
const LICENSES = "THIRD-PARTY-LICENSES.txt";
const EXECUTABLE = 0o755;

/**
 * The first two bring programs along, one a system: what cannot be put into a file of ours. `pg` is
 * installed by those who use Postgres.
 */
const NOT_BUNDLED = [
  "@vscode/ripgrep",
  "libsql",
  "pg",
  "@aws-sdk/credential-provider-node",
  "google-auth-library",
];

/**
 * What is compiled once is kept by Node, where Node can (22 and later), in a folder of the
 * user's own: one that others may write to could hold anything. It is asked before anything
 * but the entry is loaded. Folders are made one by one, and nothing is done where that fails:
 * Node itself would try for ever where a file system takes no folders.
 */
const KEEP_COMPILED = `import * as nodeModule from "node:module";
import * as nodeFs from "node:fs";
import * as nodeOs from "node:os";
if (nodeModule.enableCompileCache) {
  try {
    const cache = process.env.XDG_CACHE_HOME || nodeOs.homedir() + "/.cache";
    for (const folder of [cache, cache + "/gyre", cache + "/gyre/compiled"]) {
      if (!nodeFs.existsSync(folder)) nodeFs.mkdirSync(folder, { mode: 0o700 });
    }
    nodeModule.enableCompileCache(cache + "/gyre/compiled");
  } catch {
    // It starts without, a little later.
  }
}`;

/** What the entry needs before it knows what is asked of it: `--version` loads nothing else. */
const BASE =
  /packages[\\/](?:cli|coding)[\\/](?:src|dist)[\\/]core[\\/](?:errors|exit-codes|options|version)\./;

/**
 * What most commands share goes into one file, because each file takes time to load; what only
 * some of them need stays apart, and so do MCP, the wires and the catalog of models.
 */
const CORE = /packages[\\/](?!cli\b|mcp\b)\w+[\\/](?:src|dist)[\\/](?!models\b|node\b|providers\b)/;
const SHARED_BY = 6;

/**
 * Letters beyond ASCII are written as escapes: a file with one of them takes V8 two bytes for each of
 * its characters, and longer to read.
 *
 * @type {import("rolldown").Plugin}
 */
const ASCII_ONLY = {
  name: "ascii-only",
  renderChunk: (code) => {
    // A backslash before it would end up before that of the escape.
    const [found] = /.{0,40}\\[^\0-\x7f]/.exec(code) ?? [];
    if (found) throw new Error(`write the letter as an escape: ${found}`);
    return code.replace(
      /[^\0-\x7f]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
  },
};

const root = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Bundles the program into a folder, which is emptied first: `gyre.js`, the parts that it
 * loads when they are needed, and the licenses of what others wrote. Throws if something
 * is imported that is neither in it, nor of Node, nor installed along with it.
 *
 * @param {{ into: string, sources?: boolean }} options `sources`: from the TypeScript files
 *   as they are now, in place of what was built
 * @returns {Promise<BundledChunk[]>}
 */
export async function bundleCli({ into, sources = false }) {
  const bundle = await rolldown({
    cwd: root,
    input: { [ENTRY]: join(root, "packages/cli", sources ? "src/main.ts" : "dist/main.js") },
    platform: "node",
    logLevel: "silent",
    external: [/^node:/, ...NOT_BUNDLED],
    resolve: { conditionNames: ["node", "import"] },
    plugins: [...(sources ? [fromSources()] : []), ASCII_ONLY],
  });
  try {
    rmSync(into, { recursive: true, force: true });
    const { output } = await bundle.write({
      dir: into,
      format: "esm",
      entryFileNames: "[name].js",
      chunkFileNames: "[name].js",
      minify: false,
      comments: false,
      sourcemap: false,
      codeSplitting: {
        groups: [
          { name: "base", test: BASE, priority: 1 },
          { name: "core", test: CORE, minShareCount: SHARED_BY },
        ],
      },
      postBanner: ({ isEntry }) => (isEntry ? KEEP_COMPILED : ""),
    });
    const chunks = output
      .filter((part) => part.type === "chunk")
      .map(({ fileName, isEntry, code, moduleIds, imports, dynamicImports }) => {
        const bytes = Buffer.byteLength(code);
        return { fileName, isEntry, bytes, moduleIds, imports, dynamicImports };
      });
    refuseForeign(chunks);
    chmodSync(join(into, `${ENTRY}.js`), EXECUTABLE);
    writeFileSync(
      join(into, LICENSES),
      collectLicenses(chunks.flatMap(({ moduleIds }) => moduleIds)),
    );
    return chunks;
  } finally {
    await bundle.close();
  }
}

/**
 * Finds our packages by the sources of what their manifests export.
 *
 * @returns {import("rolldown").Plugin}
 */
function fromSources() {
  /** @type {Map<string, string>} */
  const files = new Map();
  for (const { folder, manifest } of listPackages(root)) {
    for (const [path, target] of Object.entries(manifest.exports ?? {})) {
      const built = String(/** @type {{ default?: string }} */ (target).default);
      const source = built.replace("./dist/", "./src/").replace(/\.js$/, ".ts");
      files.set(join(manifest.name, path), join(folder, source));
    }
  }
  return { name: "from-sources", resolveId: (id) => files.get(id) };
}

/** @param {readonly BundledChunk[]} chunks */
function refuseForeign(chunks) {
  const own = new Set(chunks.map(({ fileName }) => fileName));
  const foreign = chunks
    .flatMap(({ imports, dynamicImports }) => [...imports, ...dynamicImports])
    .filter((name) => !own.has(name) && !name.startsWith("node:") && !isBuiltin(name))
    .filter((name) => !NOT_BUNDLED.includes(packageName(name)));
  if (foreign.length > 0) throw new Error(`the bundle imports ${foreign.join(", ")}`);
}

/**
 * The licenses, and notices where there are any, of the packages that files belong to.
 *
 * @param {readonly string[]} files
 */
function collectLicenses(files) {
  const inPackages = files.filter((file) => file.includes(`${sep}node_modules${sep}`));
  const folders = [...new Set(inPackages.map(packageFolder))].toSorted();
  const parts = folders.map((folder) => {
    const { name, version, license } = readManifest(folder);
    const texts = readdirSync(folder).filter((file) => /^(licen[cs]e|notice)\b/i.test(file));
    if (!texts.some((file) => /^licen/i.test(file))) throw new Error(`${name} has no license`);
    const text = texts.map((file) => readFileSync(join(folder, file), "utf8").trim());
    return [`${name} ${version} (${license})`, ...text].join("\n\n");
  });
  const rule = `\n\n${"-".repeat(80)}\n\n`;
  return `gyre contains the work of others, under these licenses.${rule}${parts.join(rule)}\n`;
}

/** @param {string} file of a package @returns {string} */
function packageFolder(file) {
  let folder = dirname(file);
  // Folders inside of a package may have a package.json with no more than a type.
  while (!existsSync(join(folder, "package.json")) || !readManifest(folder).version) {
    folder = dirname(folder);
  }
  return folder;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      into: { type: "string", default: join(root, "packages/cli/bundle") },
      sources: { type: "boolean", default: false },
      json: { type: "boolean" },
    },
  });
  const chunks = await bundleCli(values);
  if (values.json) console.log(JSON.stringify(chunks));
}
