import { type Count, countQuestions } from "./count.ts";
import { moreTasks } from "./more-tasks.ts";
import { tasks } from "./tasks.ts";
import type { PermissionMode } from "@gyre/tools";

// npm run questions [-- MODE]: how often a person is asked in two lists of 40 tasks, and about what.
const modes: readonly PermissionMode[] = ["ask", "auto-edit", "auto", "plan", "full"];
const [, , only] = process.argv;
let failed = false;
for (const [name, list] of Object.entries({ "first list": tasks, "second list": moreTasks })) {
  const delicate = list.flatMap(({ calls }) => calls).filter((each) => "reason" in each).length;
  console.log(
    `${name}: ${list.length} tasks, ${delicate} calls that must not be made without asking`,
  );
  for (const mode of modes) {
    if (only !== undefined && mode !== only) continue;
    const counts: Count[] = [];
    for (const task of list) counts.push(await countQuestions(task, mode));
    const needless = counts.flatMap((count) => count.needless);
    const unasked = counts.flatMap((count) => count.unasked);
    const stopped = counts.reduce((sum, count) => sum + count.stopped, 0);
    failed ||= mode !== "full" && unasked.length > 0;
    console.log(
      `${mode.padEnd(10)} stopped ${stopped} of ${delicate}, asked needlessly ${needless.length} times`,
    );
    if (only !== undefined) for (const line of needless) console.log(`  asked    ${line}`);
    for (const line of unasked) console.log(`  unasked  ${line}`);
  }
}
process.exitCode = failed ? 1 : 0;
