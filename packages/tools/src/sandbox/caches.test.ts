import { describe, expect, it } from "vitest";
import { moveCaches } from "./caches.ts";

const program = { argv: [], cwd: "/", env: { HOME: "/home/me" } };
const policy = { writable: ["/work"], readOnly: [], hidden: [], network: false };

describe("caches of package managers", () => {
  it("are in the private folder", () => {
    expect(moveCaches(program, policy, "/tmp")).toMatchObject({
      npm_config_cache: "/tmp/cache/npm",
      GOCACHE: "/tmp/cache/go-build",
      PIP_CACHE_DIR: "/tmp/cache/pip",
    });
  });

  it("stay where they are if the program may write there", () => {
    const writable = ["/work", "/home/me/.cache", "/home/me/.npm"];
    const moved = moveCaches(program, { ...policy, writable }, "/tmp");
    expect(moved).not.toHaveProperty("npm_config_cache");
    expect(moved).not.toHaveProperty("GOCACHE");
    expect(moved).toHaveProperty("BUN_INSTALL_CACHE_DIR", "/tmp/cache/bun");
  });

  it("are read where they are if nothing can be downloaded into them", () => {
    expect(moveCaches(program, policy, "/tmp")).not.toHaveProperty("CARGO_HOME");
    const moved = moveCaches(program, { ...policy, network: true }, "/tmp");
    expect(moved).toMatchObject({
      CARGO_HOME: "/tmp/cache/cargo",
      GOMODCACHE: "/tmp/cache/go-mod",
    });
  });
});
