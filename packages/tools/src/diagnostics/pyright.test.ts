import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { temporaryEnv } from "../testing/temporary-env.ts";
import { Diagnostics } from "./diagnostics.ts";
import { KNOWN_SERVERS } from "./language-servers.ts";

// Runs where pyright is installed: npm install --global pyright

const isInstalled = spawnSync("which", ["pyright-langserver"]).status === 0;

it.runIf(isInstalled)("pyright finds what is wrong, and that it is not any more", async () => {
  const folder = await temporaryEnv();
  const { env } = folder;
  const environment = { PATH: process.env["PATH"] ?? "" };
  const servers = KNOWN_SERVERS.map((server) => ({ ...server, isChosen: true }));
  const limits = { startMs: 100_000, checkMs: 100_000 };
  const diagnostics = new Diagnostics({ ...env, environment }, { servers, ...limits });
  const { signal } = new AbortController();
  const path = join(env.workspace.root, "a.py");
  try {
    await writeFile(path, "def f(x: int) -> str:\n    return x\n\nprint(missing)\n");
    expect(await diagnostics.describe([path], signal)).toMatch(
      /^pyright now finds 2 errors in a\.py:\na\.py:2:12 .*\(reportReturnType\)\na\.py:4:7 .*\(reportUndefinedVariable\)$/,
    );
    await writeFile(path, "def f(x: int) -> int:\n    return x\n");
    expect(await diagnostics.describe([path], signal)).toBeUndefined();
  } finally {
    await diagnostics.close();
    await folder.remove();
  }
});
