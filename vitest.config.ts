import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const source = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  resolve: {
    alias: {
      "@gyre/ai/models": source("packages/ai/src/models/index.ts"),
      "@gyre/ai/node": source("packages/ai/src/node/index.ts"),
      "@gyre/ai/providers/": source("packages/ai/src/providers/"),
      "@gyre/ai/providers": source("packages/ai/src/providers/index.ts"),
      "@gyre/ai": source("packages/ai/src/index.ts"),
      "@gyre/agent": source("packages/agent/src/index.ts"),
      "@gyre/tools/mcp": source("packages/tools/src/mcp/index.ts"),
      "@gyre/tools": source("packages/tools/src/index.ts"),
      "@gyre/sessions": source("packages/sessions/src/index.ts"),
      "@gyre/protocol/http-transport": source("packages/protocol/src/http-transport.ts"),
      "@gyre/protocol/node": source("packages/protocol/src/node/index.ts"),
      "@gyre/protocol/proxy": source("packages/protocol/src/proxy.ts"),
      "@gyre/protocol/websocket": source("packages/protocol/src/websocket.ts"),
      "@gyre/protocol/stdio": source("packages/protocol/src/node/stdio.ts"),
      "@gyre/protocol": source("packages/protocol/src/index.ts"),
      "@gyre/server/client": source("packages/server/src/client/index.ts"),
      "@gyre/server": source("packages/server/src/index.ts"),
    },
  },
  test: {
    include: [
      "packages/*/src/**/*.test.ts",
      "scripts/**/*.test.ts",
      "docs/**/*.test.ts",
      "sim/src/**/*.test.ts",
      "bench/peers/*.test.ts",
      "recorded/src/**/*.test.ts",
    ],
    pool: "threads",
    testTimeout: 20_000,
  },
});
