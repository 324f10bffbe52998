import { type McpServerConfig, variablesIn } from "@gyre/tools/mcp";
import { EXIT, ExitError } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { mcpFingerprint, mcpTrust, mcpTrustKey, readMcpFile } from "./mcp-project.ts";
import type { ProjectFile } from "../settings/project-file.ts";
import { oneLine } from "../settings/settings-problem.ts";
import { shownValue } from "../settings/settings-shown.ts";
import { readTrustFile, trustFile, writeTrustFile } from "../settings/trust.ts";

const MARGIN = 2;

/**
 * Shows which servers a project's `.mcp.json` would start or reach, and has them used from now
 * on, as long as it stays as it is, if `agree` says so. Throws `ExitError` and `TrustFileError`.
 */
export async function trustMcpFile(
  file: ProjectFile,
  cwd: string,
  io: Io,
  home: string,
  agree: (what: string) => Promise<boolean>,
): Promise<void> {
  const project = readMcpFile(file, cwd);
  const { path, servers, problems } = project;
  const about = Object.entries(servers).flatMap(([name, config]) => shownServer(name, config));
  io.stdout.write(`${oneLine(path)} has these MCP servers:\n${about.join("")}`);
  for (const problem of problems) io.stderr.write(`gyre: ${oneLine(`${path}: ${problem}.`)}\n`);
  if (problems.length > 0) {
    throw new ExitError(EXIT.failed, oneLine(`${path} is not trusted: mend it first.`));
  }
  io.stdout.write("They run with all your rights.\n");
  if (!(await agree(path))) return;
  const before = mcpTrust(project, io.env, home);
  const store = trustFile(io.env, home);
  const entry: [string, string] = [mcpTrustKey(project), mcpFingerprint(project)];
  writeTrustFile(store, new Map([...readTrustFile(store), entry]));
  const still = before === "trusted" ? "still" : "now";
  io.stdout.write(`${oneLine(path)} is ${still} trusted, until it changes.\n`);
}

/** All of it, and which variables it would see: a name may be chosen for its value. */
function shownServer(name: string, config: McpServerConfig): string[] {
  const margin = " ".repeat(MARGIN);
  const variables = variablesIn(config);
  const sent =
    variables.length === 0 ? "" : `${margin}It is given the value of ${variables.join(", ")}.\n`;
  // A name that could not be seen as it is, is shown as it is written.
  const shown = oneLine(name) === name ? name : shownValue(name);
  return [`${margin}${shown}: ${shownValue(config, MARGIN)}\n`, sent];
}
