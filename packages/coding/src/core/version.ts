import { existsSync, readFileSync } from "node:fs";

/** The manifest as seen from the bundle (`bundle/*.js`), and from here. */
const MANIFESTS = ["../package.json", "../../../cli/package.json"];

/** The version of this program. */
export function version(): string {
  const file = MANIFESTS.map((path) => new URL(path, import.meta.url)).find((url) =>
    existsSync(url),
  );
  if (file === undefined)
    throw new Error("The program's package.json is missing. Install gyre again.");
  const manifest: { version: string } = JSON.parse(readFileSync(file, "utf8"));
  return manifest.version;
}
