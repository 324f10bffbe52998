import { statSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import type { Clock } from "@gyre/ai";
import { version } from "@gyre/coding/internal/core/version";
import { buildArgv } from "@gyre/coding/internal/extensions/hook-run";
import type {
  StatusCommandSetting,
  StatusLineSetting,
} from "@gyre/coding/internal/settings/terminal/status-line";
import { shownLine } from "@gyre/coding/internal/text/shown-text";
import { cleanEnvironment, runProgram } from "@gyre/tools";
import type { Environment } from "../../../core/io.ts";
import { contextPercent, countTokens, type FooterFacts, keyModeSpans } from "./footer.ts";
import { fitRow, type Row, span } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";
import { STATUS_TIMEOUT_MS, StatusCommand, type StatusEnd } from "./command.ts";
import { templateRow } from "./template.ts";

const MS = 1_000;

export interface StatusLineOptions {
  setting: StatusLineSetting;
  env: Environment;
  theme: Theme;
  clock: Clock;
  /** For what is too long for memory; undefined: that of the system. */
  spoolFolder: () => string | undefined;
  changed: () => void;
  warn: (text: string) => void;
}

/** The last row of the terminal as the user has set it. */
export interface StatusLine {
  /** Undefined while there is none yet. */
  row(facts: FooterFacts, columns: number): Row | undefined;
  close(): void;
}

export function openStatusLine(options: StatusLineOptions): StatusLine {
  const { setting, theme } = options;
  if (typeof setting === "string") {
    return {
      row: (facts, columns) => templateRow(setting, facts, columns, theme),
      close: () => {},
    };
  }
  let folder: string | undefined;
  const command = new StatusCommand({
    ...options,
    hasColors: theme.strong !== "",
    run: (input, signal) => runStatusProgram(setting, input, signal, { ...options, folder }),
    warn: (problem) => options.warn(`The status line is not up to date: its program ${problem}.`),
  });
  return {
    row(facts, columns) {
      folder = facts.folder;
      command.update(JSON.stringify(describeFacts(facts)));
      if (!command.row) return undefined;
      const keys = keyModeSpans(facts, theme);
      const gap = keys.length > 0 && command.row.length > 0 ? [span(" · ", theme.dim)] : [];
      return fitRow([...keys, ...gap, ...command.row], columns);
    },
    close: () => command.close(),
  };
}

/** What the program gets. Nothing in it changes by itself. */
export function describeFacts(facts: FooterFacts): Record<string, unknown> {
  const { folder, model, usage } = facts;
  const { asked, answered } = countTokens(usage);
  return {
    hook_event_name: "Status",
    session_id: facts.session,
    cwd: folder,
    version: version(),
    model: model && { id: model.id, display_name: model.name ?? model.id },
    workspace: { current_dir: folder, project_dir: folder },
    cost: { total_cost_usd: usage.cost?.total },
    context_window: {
      total_input_tokens: asked,
      total_output_tokens: answered,
      used_tokens: facts.contextTokens,
      compact_at: facts.compactAt,
      used_percentage: contextPercent(facts),
    },
    mode: facts.mode,
    thinking: facts.thinking,
    branch: facts.branch,
    jobs: facts.jobs ?? 0,
  };
}

async function runStatusProgram(
  { command }: StatusCommandSetting,
  input: string,
  signal: AbortSignal,
  { env, folder, spoolFolder }: StatusLineOptions & { folder: string | undefined },
): Promise<StatusEnd> {
  // The folder of an agent that runs elsewhere may not be here.
  const isHere = folder !== undefined && statSync(folder, { throwIfNoEntry: false })?.isDirectory();
  const cwd = isHere ? folder : homedir();
  const set = { GYRE_PROJECT_DIR: cwd, CLAUDE_PROJECT_DIR: cwd };
  const end = await runProgram(
    {
      argv: buildArgv(command),
      cwd,
      env: cleanEnvironment(env, { network: true, workspace: cwd, set }),
    },
    { input, signal, spoolFolder: spoolFolder() || tmpdir(), timeoutMs: STATUS_TIMEOUT_MS },
  );
  if (end.timedOut) {
    return { stdout: "", problem: `was ended: it took more than ${STATUS_TIMEOUT_MS / MS} s` };
  }
  if (end.exitCode !== 0) {
    const how = end.exitCode === null ? `was ended by ${end.signal}` : `ended with ${end.exitCode}`;
    const message = shownLine(end.stderr.head.trim());
    return { stdout: "", problem: message === "" ? how : `${how}: ${message}` };
  }
  return { stdout: end.stdout.head };
}
