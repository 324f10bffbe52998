import { plainText } from "@gyre/coding/internal/text/plain-text";
import type { Io } from "../../core/io.ts";
import { openTerminal } from "../../core/terminal.ts";
import type { Check } from "./checks.ts";

const WIDEST_STATUS = "problem".length;

/** A line for each check, and how many are not well. */
export function writeChecks(checks: readonly Check[], io: Io): void {
  const { style } = openTerminal(io.stdout, io.env);
  const colors = { ok: style.green, warning: style.yellow, problem: style.red };
  const widest = Math.max(...checks.map(({ name }) => name.length));
  for (const { message, name, status } of checks) {
    const color = colors[status];
    const text = plainText(message).replaceAll("\n", " ");
    io.stdout.write(`${color(status.padEnd(WIDEST_STATUS))}  ${name.padEnd(widest)}  ${text}\n`);
  }
  const count = (status: Check["status"]): number =>
    checks.filter((check) => check.status === status).length;
  const [problems, warnings] = [count("problem"), count("warning")];
  io.stdout.write(
    problems + warnings === 0
      ? "\nAll is well.\n"
      : `\n${counted(problems, "problem")}, ${counted(warnings, "warning")}.\n`,
  );
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
