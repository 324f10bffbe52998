import { statSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { EXIT, type ExitCode, UsageError } from "../core/exit-codes.ts";
import { pickPlace, readFlags } from "../core/flag-settings.ts";
import type { Io } from "../core/io.ts";
import type { Values } from "../core/options.ts";
import { inspectSettings } from "@gyre/coding/internal/settings/load";
import { oneLine } from "@gyre/coding/internal/settings/problem";
import { withoutSecrets } from "@gyre/coding/internal/settings/shown";
import { SETTING_NAMES } from "@gyre/coding/internal/settings/table";
import { listOrigins, listSettings } from "../text/settings-text.ts";

const INDENT = 2;

/**
 * `gyre config [--json]`: each setting, its value and where it comes from, or what holds
 * where nothing sets it (as JSON only those that are set), the files that
 * were looked at, and what is wrong. Never a key. Ends with 1 if something is wrong that
 * keeps the program from running.
 */
export async function runConfig(
  values: Values,
  io: Io,
  home: string = homedir(),
): Promise<ExitCode> {
  const cwd = resolve(io.cwd, values.cwd ?? ".");
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) {
    throw new UsageError(`--cwd "${values.cwd}": there is no such folder.`);
  }
  const flags = await readFlags(values, { ...pickPlace(io), cwd, start: io.cwd, home });
  const { policy } = flags;
  const { settings, layers, files, problems } = await inspectSettings(flags);

  if (values.json) {
    const set = SETTING_NAMES.filter((name) => settings[name] !== undefined).map((name) => [
      name,
      { value: withoutSecrets(settings[name]), from: listOrigins(name, layers) },
    ]);
    const whole = {
      settings: Object.fromEntries(set),
      ...(policy && { policy: policy.rules }),
      files,
      problems,
    };
    io.stdout.write(`${JSON.stringify(whole, undefined, INDENT)}\n`);
  } else {
    const rows = listSettings(settings, layers).map(({ name, value, from }) => [
      name,
      `${value}  (${from.length > 0 ? from.join(", ") : "default"})`,
    ]);
    const places = files.map(({ of, path, state }) => {
      const more = of === "policy file" && policy ? `: ${policy.describe()}` : "";
      return [of, `${oneLine(path)} (${state})${more}`];
    });
    io.stdout.write(`${aligned(rows)}\n${aligned(places)}`);
    for (const { level, text } of problems) io.stderr.write(`gyre: ${level}: ${text}\n`);
  }
  return problems.some(({ level }) => level === "error") ? EXIT.failed : EXIT.done;
}

/** Two columns; what takes several lines is set off as a whole. */
function aligned(rows: readonly (readonly string[])[]): string {
  const width = Math.max(...rows.map(([name = ""]) => name.length)) + INDENT;
  return rows
    .map(([name = "", text = ""]) => {
      return `${name.padEnd(width)}${text.replaceAll("\n", `\n${" ".repeat(width)}`)}\n`;
    })
    .join("");
}
