// What takes too long for `npm test`: part after part, with its seconds. Fails if one does.
import { spawnSync } from "node:child_process";
import { argv, env, execPath } from "node:process";
import { fileURLToPath } from "node:url";
import { findChromium, NO_CHROMIUM } from "../shared/chromium.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** @type {readonly { name: string, args: readonly string[], needsChromium?: boolean }[]} */
const PARTS = [
  { name: "many cases", args: ["scripts/drive/tagged.mjs", "long", ...argv.slice(2)] },
  { name: "instructions", args: ["tests/bench/dist/guard/main.js"] },
  { name: "next.js", args: ["scripts/drive/examples.mjs", "next-chat"], needsChromium: true },
];

for (const { name, args, needsChromium = false } of PARTS) {
  if (needsChromium && env["CI"] === undefined && findChromium() === undefined) {
    console.log(`${name}: not run. ${NO_CHROMIUM}`);
    continue;
  }
  const startedAt = performance.now();
  const { status } = spawnSync(execPath, args, { cwd: root, stdio: "inherit" });
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`${name}: ${seconds} s, ${status === 0 ? "ok" : "FAILED"}`);
  if (status !== 0) process.exitCode = 1;
}
