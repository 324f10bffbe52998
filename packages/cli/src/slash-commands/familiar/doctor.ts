import type { CommandResult } from "@gyre/coding/internal/conversation/command";
import type { FamiliarContext } from "./context.ts";

/** `/doctor`: what `gyre doctor` prints, for the folder of this conversation. */
export async function showDoctor({ env, setup, signal }: FamiliarContext): Promise<CommandResult> {
  const { runDoctor } = await import("../../commands/doctor/doctor.ts");
  let printed = "";
  const stdout = { write: (text: string) => void (printed += text) };
  const nowhere = { write: () => {} };
  await runDoctor(
    {},
    { stdin: process.stdin, stdout, stderr: nowhere, env, cwd: setup.cwd, signal },
  );
  return { show: [{ type: "code", text: printed.trimEnd() }] };
}
