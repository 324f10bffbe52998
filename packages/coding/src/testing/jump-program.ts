import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { openSession } from "@gyre/sessions";
import { openWorkspace } from "@gyre/tools";
import { FileRecorder } from "../file-history/recorder.ts";
import type { FilePlace } from "../file-history/lines/line.ts";

/** What changes files, by its name in `fs` or in `fs.promises`. */
const SYNC = ["renameSync", "linkSync", "unlinkSync", "mkdirSync", "rmdirSync", "chmodSync"];
const ASYNC = ["writeFile", "appendFile", "rename", "rm", "rmdir", "symlink", "mkdir"];

/*
 * Brings the files of a folder to a place, and kills itself before the change of this number, as a crash would:
 * FOLDER HISTORIES SESSION PLACE NUMBER. Ends with 0 where it came to the end before.
 */
const [root = "", folder = "", path = "", place = "", number = ""] = process.argv.slice(2);
const workspace = await openWorkspace(root);
const session = await openSession(path, { readOnly: true });
const recorder = new FileRecorder({
  workspace,
  session: () => session,
  isJobRunning: () => false,
  folder,
  warn: (text) => process.stdout.write(`${text}\n`),
});
const to: FilePlace = JSON.parse(place);
const plan = await recorder.plan(to);
killAt(Number(number));
await recorder.apply(plan, { withConflicts: false });
process.exit(0);

function killAt(last: number): void {
  let count = 0;
  const guard = (functions: object, names: readonly string[]): void => {
    for (const name of names) {
      const real: unknown = Reflect.get(functions, name);
      if (typeof real !== "function") throw new Error(`There is no ${name}.`);
      Reflect.set(functions, name, (...args: unknown[]): unknown => {
        if (++count === last) process.kill(process.pid, "SIGKILL");
        return Reflect.apply(real, functions, args);
      });
    }
  };
  guard(fs, SYNC);
  guard(fs.promises, ASYNC);
  syncBuiltinESMExports();
}
