import { readFileSync } from "node:fs";

/** The version of this program. Stands in the folder of the entry, so that the path holds in the bundle too. */
export function version(): string {
  const manifest: { version: string } = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  );
  return manifest.version;
}
