import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, relative } from "node:path";
import { errorMessage } from "@gyre/ai";
import { INSTRUCTION_NAMES } from "@gyre/coding/internal/guidance/instructions";
import { projectFolders } from "@gyre/coding/internal/guidance/project-folders";
import { configFolder } from "@gyre/coding/internal/settings/file";
import { claudeFolder } from "@gyre/coding/internal/settings/project-file";
import { asCode } from "../../text/markdown-text.ts";
import type { FamiliarContext } from "./context.ts";

/** `# text`: adds a line to a file that the model reads at the start of each session. */
export async function remember(
  line: string,
  { choose, env, setup: { cwd } }: FamiliarContext,
): Promise<string | undefined> {
  if (line === "") throw new Error("Say what to remember: # the tests need Node 20");
  const home = homedir();
  const folders = projectFolders(cwd, home);
  const project =
    folders.toReversed().flatMap((folder) => findFile(folder) ?? [])[0] ??
    join(folders[0], "AGENTS.md");
  const own =
    findFile(configFolder(env, home)) ??
    findFile(claudeFolder(env, home)) ??
    join(configFolder(env, home), "AGENTS.md");
  const path = await choose({
    title: "Remember it where?",
    choices: [
      { value: project, label: "In this project", detail: relative(cwd, project) || project },
      { value: own, label: "For all projects, for me", detail: own.replace(home, "~") },
    ],
  });
  if (path === undefined) return undefined;
  try {
    mkdirSync(dirname(path), { recursive: true });
    const isOpen = existsSync(path) && /[^\n]$/.test(readFileSync(path, "utf8"));
    appendFileSync(path, `${isOpen ? "\n" : ""}- ${line}\n`);
  } catch (error) {
    throw new Error(`${path} cannot be written: ${errorMessage(error)}`, { cause: error });
  }
  return `Added to ${asCode(path)}. It holds from the next session on; this one knows it once you say it.`;
}

function findFile(folder: string): string | undefined {
  return INSTRUCTION_NAMES.map((name) => join(folder, name)).find((path) => existsSync(path));
}
