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
    pool: "threads",
    testTimeout: 20_000,
  },
});
