import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import whole from "../../vitest.config.ts";

// The tests of the core with one source file replaced, for `npm run faults -- --tests`.

const source = process.env["GYRE_FAULTY_SOURCE"] ?? "";
const code = readFileSync(process.env["GYRE_FAULTY_CODE"] ?? "", "utf8");

export default defineConfig({
  ...whole,
  root: fileURLToPath(new URL("../..", import.meta.url)),
  plugins: [
    {
      name: "faulty-source",
      enforce: "pre",
      // It was built from the source, whose imports name sources.
      load: (id) =>
        id === source ? code.replaceAll(/(from "\.[^"]*)\.js"/g, '$1.ts"') : undefined,
    },
  ],
  test: {
    ...whole.test,
    maxWorkers: 1,
    bail: 1,
    testTimeout: 20_000,
    reporters: ["json"],
  },
});
