import { type Context, textOf, type ToolResultMessage } from "@gyre/ai";
import { call, say, type ScriptAnswer, type ScriptFunction, think } from "@gyre/ai/testing";
import { BROKEN_CODE, FIXED_CODE, SOURCE_FILE, TEST_COMMAND, TEST_FILE } from "./project.ts";

/**
 * What the scripted model says, one function for each request. Each looks at what the
 * tools really gave, as a model would, and stops the story where that is not what the
 * story needs: it never claims what did not happen.
 */
export const demoScript: readonly ScriptFunction[] = [
  lookAround,
  readTheCode,
  fix,
  testAgain,
  sumUp,
];

function lookAround(): ScriptAnswer {
  return [
    think("I know nothing of this project yet. What is in it, and what do its tests say?"),
    say("I'll look around and run the tests."),
    call("ls", { path: "." }),
    call("shell", { command: TEST_COMMAND }),
  ];
}

function readTheCode(context: Context): ScriptAnswer {
  const run = lastResult(context, "shell");
  if (!run.isError) return "The tests pass already, so there is nothing to fix.";
  const { failed, difference, total } = readReport(textOf(run));
  const first = failed[0];
  if (first === undefined) {
    return `The tests could not be run, so I stop here. The last of what they said: ${lastLine(run)}`;
  }
  const seen = difference === undefined ? "" : `: \`${difference}\``;
  const verb = failed.length === 1 ? "fails" : "fail";
  return [
    think("The failing test first, then the code that it calls."),
    say(
      `${failed.length} of ${total} tests ${verb}, \`${first}\`${seen}. I'll read both sides of it.`,
    ),
    call("read", { path: TEST_FILE }),
    call("read", { path: SOURCE_FILE }),
  ];
}

function fix(context: Context): ScriptAnswer {
  const source = lastResult(context, "read");
  if (source.isError || !textOf(source).includes(BROKEN_CODE)) {
    return `${SOURCE_FILE} is not what I expected, so I leave it as it is.`;
  }
  return [
    think("Math.floor drops a fraction from every share. Where does the remainder go? Nowhere."),
    say(
      "`splitBill` rounds every share down and forgets what is left: 1000 cents for 3 people " +
        "become 3 × 333 = 999.\n\nWhat is left, `cents % people`, is too little for one more " +
        "cent each. So the first few people pay it.",
    ),
    call("edit", {
      path: SOURCE_FILE,
      edits: [{ oldText: BROKEN_CODE, newText: FIXED_CODE }],
    }),
  ];
}

function testAgain(context: Context): ScriptAnswer {
  const edit = lastResult(context, "edit");
  if (edit.isError) return `The edit failed, so the bug is still there. ${textOf(edit)}`;
  return [say("Now the same tests again."), call("shell", { command: TEST_COMMAND })];
}

function sumUp(context: Context): ScriptAnswer {
  const run = lastResult(context, "shell");
  if (run.isError) {
    const { failed } = readReport(textOf(run));
    const which = failed.length > 0 ? ` (${failed.join(", ")})` : "";
    return `The tests still fail${which}. My change did not fix the bug.`;
  }
  const { total } = readReport(textOf(run));
  return (
    `All ${total} tests pass. The shares now add up to the bill, and no two of them differ ` +
    "by more than a cent."
  );
}

/** What the spec reporter wrote, as far as it is needed here. */
function readReport(report: string): {
  failed: string[];
  difference: string | undefined;
  total: number;
} {
  const failed = new Set<string>();
  // A failed test is named twice, in its place and at the end.
  for (const [, name] of report.matchAll(/^\s*✖ (.+) \([\d.]+ms\)$/gm)) failed.add(name ?? "");
  return {
    failed: [...failed],
    difference: /^\s*(\S+ !== \S+)$/m.exec(report)?.[1],
    total: Number(/^ℹ tests (\d+)$/m.exec(report)?.[1] ?? 0),
  };
}

function lastResult(context: Context, tool: string): ToolResultMessage {
  for (const message of [...context.messages].reverse()) {
    if (message.role === "toolResult" && message.toolName === tool) return message;
  }
  throw new Error(`The demo's script looked for a result of "${tool}", and there is none.`);
}

/** The lines that say where a text came from are not part of it. */
function lastLine(result: ToolResultMessage): string {
  const lines = textOf(result).trimEnd().split("\n");
  return lines.findLast((line) => !/^<\/?source /.test(line)) ?? "";
}
