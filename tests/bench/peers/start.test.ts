import { chmodSync, cpSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { plainEnvironment, run } from "../../../scripts/shared/command.mjs";
import { plant } from "../../../scripts/shared/tree.ts";

const scripts = fileURLToPath(new URL("../../../scripts", import.meta.url));

it.skipIf(process.platform === "win32")("an install that fails says where, and why", async () => {
  const root = plant({
    "tests/bench/peers/start.mjs": readFileSync(new URL("./start.mjs", import.meta.url), "utf8"),
    "tests/bench/peers/package-lock.json": {},
    "bin/npm": "#!/bin/sh\necho made-up error >&2\nexit 1\n",
  });
  cpSync(scripts, join(root, "scripts"), { recursive: true });
  chmodSync(join(root, "bin/npm"), 0o755);
  const before = plainEnvironment();
  const { code, output } = await run(process.execPath, ["tests/bench/peers/start.mjs"], {
    cwd: root,
    env: { ...before, PATH: `${join(root, "bin")}${delimiter}${before["PATH"]}` },
  });
  expect(code).toBe(1);
  expect(output).toContain("Nothing could be installed in tests/bench/peers.\nnpm ci ");
  expect(output).toContain("made-up error");
  expect(output).not.toMatch(/\n +at /);
});
