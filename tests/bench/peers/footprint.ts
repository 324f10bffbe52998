import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** What a package brings with it. */
export interface Footprint {
  readonly packages: number;
  readonly mb: number;
}

interface Manifest {
  name?: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
  peerDependenciesMeta?: Record<string, { optional?: boolean }>;
}

/**
 * Everything that installing `names` into `folder` brings: they themselves, what they
 * depend on, and so on; peers that are not optional, and optional ones that are there
 * because something else needs them, count with those.
 */
export function footprint(folder: string, names: readonly string[]): Footprint {
  const seen = new Set<string>();
  const todo = names.map((name) => found(folder, name) ?? missing(folder, name));
  for (let at = todo.pop(); at !== undefined; at = todo.pop()) {
    if (seen.has(at)) continue;
    seen.add(at);
    const manifest = JSON.parse(readFileSync(join(at, "package.json"), "utf8")) as Manifest;
    const meta = manifest.peerDependenciesMeta ?? {};
    const needed = [
      ...Object.keys(manifest.dependencies ?? {}),
      ...Object.keys(manifest.optionalDependencies ?? {}),
      ...Object.keys(manifest.peerDependencies ?? {}).filter((name) => !meta[name]?.optional),
    ];
    for (const name of needed) {
      const place = found(at, name);
      if (place !== undefined) todo.push(place);
    }
  }
  const bytes = [...seen].reduce((sum, place) => sum + bytesIn(place), 0);
  return { packages: seen.size, mb: bytes / 1e6 };
}

function missing(folder: string, name: string): never {
  throw new Error(`${name} is not installed in ${folder}. Run npm ci there.`);
}

/** Where Node would find it from `folder`. */
function found(folder: string, name: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    const place = join(at, "node_modules", name);
    if (existsSync(join(place, "package.json"))) return place;
    if (dirname(at) === at) return undefined;
  }
}

/** Of the package's own files: packages inside of it are counted by themselves. */
function bytesIn(folder: string): number {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) bytes += entry.name === "node_modules" ? 0 : bytesIn(path);
    else bytes += lstatSync(path).size;
  }
  return bytes;
}
