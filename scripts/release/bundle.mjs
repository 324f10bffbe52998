import { isAbsolute } from "node:path";
import { rolldown } from "rolldown";

/**
 * Bundles a module for browsers, minified. Throws if something in it could not be
 * found, or is not for browsers.
 *
 * @param {string} entry a path, or the text of a module
 * @param {string} root where packages are looked up
 * @returns {Promise<{ fileName: string, code: string, imports: string[] }[]>} the first one is the entry
 */
export async function bundleForBrowser(entry, root) {
  const name = "gyre-entry.mjs";
  const bundle = await rolldown({
    cwd: root,
    input: { main: isAbsolute(entry) ? entry : name },
    platform: "browser",
    logLevel: "silent",
    external: [],
    plugins: [
      {
        name: "entry-from-text",
        resolveId: (id) => (id === name ? `${root}/${name}` : undefined),
        load: (id) => (id === `${root}/${name}` ? entry : undefined),
      },
    ],
  });
  try {
    const { output } = await bundle.generate({
      format: "esm",
      minify: true,
      entryFileNames: "[name].js",
    });
    const chunks = output.filter((part) => part.type === "chunk");
    const own = new Set(chunks.map(({ fileName }) => fileName));
    const foreign = chunks
      .flatMap(({ imports, dynamicImports }) => [...imports, ...dynamicImports])
      .filter((specifier) => !own.has(specifier));
    if (foreign.length > 0) throw new Error(`not for browsers: imports ${foreign.join(", ")}`);
    return chunks.map(({ fileName, code, imports }) => ({ fileName, code, imports }));
  } finally {
    await bundle.close();
  }
}
