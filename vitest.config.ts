import { defineConfig } from "vitest/config";

export default defineConfig({
  // The packages' sources, not what was built from them.
  ssr: { resolve: { conditions: ["source", "node", "import", "default"] } },
  test: {
    include: [
      "packages/*/src/**/*.test.ts",
      "scripts/**/*.test.ts",
      "docs/**/*.test.ts",
      "tests/*/src/**/*.test.ts",
      "tests/bench/peers/*.test.ts",
    ],
    // No test replaces modules or leaves globals changed, so files share the modules they load.
    pool: "threads",
    isolate: false,
    maxWorkers: "100%",
    // Limits for a test that hangs. On a busy machine a test takes several times as long.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
