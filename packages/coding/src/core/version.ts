import { existsSync, readFileSync } from "node:fs";

/** The manifest as seen from the bundle of the program (`bundle/*.js`), and from here. */
const MANIFESTS = ["../package.json", "../../package.json"];
/** All of ours have the same version. */
const OURS: readonly unknown[] = ["gyre", "@gyre/coding"];
/** For programs that have this code in a bundle of their own, where no manifest of ours is. */
const UNKNOWN_VERSION = "0.0.0";

/** The version of this program. */
export function version(): string {
  for (const path of MANIFESTS) {
    const file = new URL(path, import.meta.url);
    if (!existsSync(file)) continue;
    const manifest: { name?: unknown; version: string } = JSON.parse(readFileSync(file, "utf8"));
    if (OURS.includes(manifest.name)) return manifest.version;
  }
  return UNKNOWN_VERSION;
}
