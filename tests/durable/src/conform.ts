import { spawn } from "node:child_process";
import { once } from "node:events";
import { type BackendName, openBackend } from "./common/backend.ts";
import { ROOT } from "./common/engines.ts";

/** The names that the tests of the promises give to their stores. */
const SUITES = [
  ...["everywhere", "parking", "promises", "attacks", "backends", "sessions", "bad_rows"],
];
/** The tests of the promises, which run on any store. */
export const CONFORM_FILES: readonly string[] = [
  ...["backends", "bad-rows", "everywhere", "parking", "promises", "under-attack"].map(
    (name) => `packages/durable/src/worker/${name}.test.ts`,
  ),
];
/** Sessions that programs write to: no engine has a part in them. */
const SESSION_FILES = ["packages/durable/src/sessions/store-sessions.test.ts"];
/** More stores than any of them opens. */
const STORES = 200;

/** Runs the tests of the promises, which have their numbers in their titles. `only`: of files with this in their name. */
export async function conform(name: BackendName, only = ""): Promise<boolean> {
  const backend = await openBackend(name);
  try {
    const env = { ...process.env };
    if (backend.server) {
      const schemas = SUITES.flatMap((suite) =>
        Array.from({ length: STORES }, (_, nth) => `create schema ${suite}_${nth + 1}`),
      );
      await backend.server.run(schemas.join(";"));
      env["GYRE_DURABLE_URL"] = backend.server.url();
    }
    const args = [
      "node_modules/vitest/vitest.mjs",
      "run",
      ...CONFORM_FILES.filter((file) => file.includes(only)),
    ];
    const engine = backend.server && backend.engine(backend.server.url());
    if (engine) {
      env["GYRE_DURABLE_ENGINE"] = JSON.stringify(engine);
      args.push("--config", "tests/durable/engines/vitest.config.ts");
    } else args.push(...SESSION_FILES);
    const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: "inherit" });
    const [code] = await once(child, "exit");
    console.log(`conform: ${name}: ${code === 0 ? "ok" : "FAILED"}`);
    return code === 0;
  } finally {
    await backend.remove();
  }
}
