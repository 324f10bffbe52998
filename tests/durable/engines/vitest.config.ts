// The tests of the promises with an engine in the place of the store's own order of work.
import { defineConfig, mergeConfig } from "vitest/config";
import root from "../../../vitest.config.ts";

export default mergeConfig(
  root,
  defineConfig({
    root: new URL("../../../", import.meta.url).pathname,
    // Modules are replaced, and a process has one DBOS.
    test: {
      setupFiles: ["tests/durable/engines/setup.ts"],
      pool: "forks",
      isolate: true,
      maxWorkers: 2,
    },
  }),
);
