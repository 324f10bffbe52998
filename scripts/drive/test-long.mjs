// What takes too long for `npm test`: part after part, with its seconds. Fails if one does.
import { spawnSync } from "node:child_process";
import { argv, execPath } from "node:process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** @type {readonly { name: string, args: readonly string[] }[]} */
const PARTS = [
  { name: "many cases", args: ["scripts/drive/tagged.mjs", "long", ...argv.slice(2)] },
  { name: "instructions", args: ["tests/bench/dist/guard/main.js"] },
];

for (const { name, args } of PARTS) {
  const startedAt = performance.now();
  const { status } = spawnSync(execPath, args, { cwd: root, stdio: "inherit" });
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`${name}: ${seconds} s, ${status === 0 ? "ok" : "FAILED"}`);
  if (status !== 0) process.exitCode = 1;
}
