import { type McpServerConfig, variablesIn } from "@gyre/mcp";
import { mcpTrustKey, readMcpFile } from "./project.ts";
import type { ProjectFile } from "../settings/project-file.ts";
import { oneLine } from "../settings/problem.ts";
import { shownValue } from "../settings/shown.ts";
import { listFiles, type TrustOffer } from "../settings/trust-offer.ts";

const MARGIN = 2;

/** Which servers a project's `.mcp.json` would start or reach. */
export function mcpOffer(file: ProjectFile, cwd: string): TrustOffer {
  const project = readMcpFile(file, cwd);
  const { files = [], path, servers, problems } = project;
  const about = Object.entries(servers).flatMap(([name, config]) => shownServer(name, config));
  const shown = `${oneLine(path)} has these MCP servers:\n${about.join("")}`;
  const offer = {
    path,
    key: mcpTrustKey(project),
    name: path,
    until: files.length > 1 ? "one of the files" : "it",
    files,
    powers: ["starts servers (MCP)"],
    notes: problems.map((problem) => oneLine(`${path}: ${problem}.`)),
  };
  if (problems.length > 0) {
    return { ...offer, shown, refusal: oneLine(`${path} is not trusted. Fix it first.`) };
  }
  return { ...offer, shown: `${shown}They run with all your rights.${listFiles(files)}` };
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
