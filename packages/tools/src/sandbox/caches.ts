import { join } from "node:path";
import { isWithin, realPlace } from "./places.ts";
import type { ProgramSpec, SandboxPolicy } from "./sandbox.ts";

interface Cache {
  /** The variable that moves it. */
  variable: string;
  /** Its folder inside of the private one. */
  name: string;
  /** Where it is in a home folder otherwise. */
  home: string;
}

/**
 * Caches without which a program fails where it cannot write to them. Others stay where they are:
 * what is in them can be read.
 */
const CACHES: readonly Cache[] = [
  { variable: "npm_config_cache", name: "npm", home: ".npm" },
  { variable: "npm_config_store_dir", name: "pnpm", home: ".local/share/pnpm" },
  { variable: "YARN_CACHE_FOLDER", name: "yarn", home: ".cache/yarn" },
  { variable: "BUN_INSTALL_CACHE_DIR", name: "bun", home: ".bun/install/cache" },
  { variable: "DENO_DIR", name: "deno", home: ".cache/deno" },
  { variable: "PIP_CACHE_DIR", name: "pip", home: ".cache/pip" },
  { variable: "UV_CACHE_DIR", name: "uv", home: ".cache/uv" },
  { variable: "GOCACHE", name: "go-build", home: ".cache/go-build" },
  { variable: "CCACHE_DIR", name: "ccache", home: ".cache/ccache" },
];

/** The same, but what is in them is enough as long as nothing can be downloaded. */
const DOWNLOADS: readonly Cache[] = [
  { variable: "GOMODCACHE", name: "go-mod", home: "go/pkg/mod" },
  { variable: "CARGO_HOME", name: "cargo", home: ".cargo" },
];

/**
 * The variables by which package managers keep their caches in `temporary`, the private folder
 * of a sandboxed program; but those caches that the policy lets it write to stay in their places.
 */
export function moveCaches(
  { env }: ProgramSpec,
  { writable, network, proxy }: SandboxPolicy,
  temporary: string,
): Record<string, string> {
  const canDownload = network || proxy !== undefined;
  const home = env["HOME"];
  const places = writable.map(realPlace);
  const isWritable = (path: string): boolean => places.some((place) => isWithin(path, place));
  const moved = [...CACHES, ...(canDownload ? DOWNLOADS : [])].filter(
    (cache) => home === undefined || !isWritable(realPlace(join(home, cache.home))),
  );
  return {
    ...Object.fromEntries(
      moved.map(({ variable, name }) => [variable, join(temporary, "cache", name)]),
    ),
    // Without a network, more tries only take more time.
    ...(canDownload ? {} : { npm_config_fetch_retries: "0" }),
  };
}
