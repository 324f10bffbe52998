import { isUtf8 } from "node:buffer";
import { join, relative, sep } from "node:path";
import { defineTool } from "@gyre/agent";
import { nearNames } from "@gyre/ai";
import { type GuardedTool, openWorkspace, sanitize, type Workspace } from "@gyre/tools";
import { formatSkill, type Skill, SKILL_FILE, SKILL_TOOL } from "./skills.ts";
import { readBody } from "./frontmatter.ts";

/** Of one text, in UTF-8. */
export const MAX_SKILL_BYTES: number = 50 * 1024;
/** The files of a skill that are named with its text. */
export const MAX_SKILL_FILES = 100;

const MAX_READ_BYTES = 1024 * 1024;
const MAX_DEPTH = 3;

const parameters = {
  type: "object",
  properties: {
    name: { type: "string" },
    file: { type: "string", description: "One of its files, from its folder" },
  },
} as const;

/**
 * A tool that gives the text of a skill, or of a file in its folder and nowhere else: skills
 * may be outside of the folder that is worked in, where other tools cannot read. `root` is
 * that folder.
 */
export function skillTool(skills: readonly Skill[], root: string): GuardedTool {
  const byName = new Map(skills.map((skill) => [skill.name, skill]));
  const find = (name: string): Skill => {
    const skill = byName.get(name);
    if (skill) return skill;
    const near = nearNames(name, [...byName.keys()]);
    const hint =
      near.length > 0 ? `Did you mean ${near.join(" or ")}?` : "Without a name all are listed.";
    throw new Error(`There is no skill "${name}". ${hint}`);
  };
  const tool = defineTool({
    name: SKILL_TOOL,
    label: "Skill",
    description: "Read a skill, or a file of one.",
    parameters,
    concurrent: true,
    idempotent: true,
    async execute({ name, file }) {
      if (!name)
        return skills.length > 0 ? skills.map(formatSkill).join("\n") : "There are no skills.";
      const skill = find(name);
      const folder = await openWorkspace(skill.folder);
      try {
        return file === undefined || file === SKILL_FILE
          ? await readSkill(skill, folder)
          : await readText(folder, file);
      } finally {
        await folder.close();
      }
    },
  });
  return {
    ...tool,
    access({ name, file }) {
      if (typeof name !== "string" || !name) {
        return { kind: "none", targets: [], summary: "Lists the skills." };
      }
      const path = join(find(name).folder, typeof file === "string" ? file : SKILL_FILE);
      const inside = relative(root, path);
      const target = (inside.startsWith("..") ? path : inside).replaceAll(sep, "/");
      return { kind: "read", targets: [target], summary: `Reads ${JSON.stringify(target)}` };
    },
  };
}

async function readSkill(skill: Skill, folder: Workspace): Promise<string> {
  const body = readBody(await readText(folder, SKILL_FILE, MAX_READ_BYTES));
  const files = await filesIn(folder);
  const about = [
    `Skill "${skill.name}" in ${skill.folder}`,
    ...(skill.compatibility === undefined ? [] : [`It needs: ${skill.compatibility}`]),
    ...(files.length > 0 ? [`Its files: ${files.join(", ")}`] : []),
  ];
  return `${about.join("\n")}\n\n${cut(body, SKILL_FILE)}`;
}

async function readText(folder: Workspace, file: string, room = MAX_SKILL_BYTES): Promise<string> {
  const { bytes } = await folder.read(file, MAX_READ_BYTES);
  if (!isUtf8(bytes)) throw new Error(`${JSON.stringify(file)} is not text.`);
  return cut(sanitize(new TextDecoder().decode(bytes)), file, room);
}

/** What fits of a text, up to the end of a line. */
function cut(text: string, file: string, room: number = MAX_SKILL_BYTES): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= room) return text;
  const end = bytes.lastIndexOf("\n", room);
  const shown = new TextDecoder().decode(bytes.subarray(0, end > 0 ? end : room), { stream: true });
  return `${shown}\n[Cut: ${file} has ${bytes.length} bytes, ${room} are shown.]`;
}

/** The names of what a skill brings along, without its own file and what is hidden. */
async function filesIn(folder: Workspace): Promise<string[]> {
  const found: string[] = [];
  const look = async (path: string, depth: number): Promise<void> => {
    for (const { name, kind } of await folder.list(path || ".")) {
      if (found.length > MAX_SKILL_FILES) return;
      const inside = path === "" ? name : `${path}/${name}`;
      if (name.startsWith(".") || inside === SKILL_FILE) continue;
      if (kind === "folder" && depth < MAX_DEPTH) await look(inside, depth + 1);
      else found.push(sanitize(kind === "folder" ? `${inside}/` : inside, { keepNewlines: false }));
    }
  };
  await look("", 1);
  return found.length > MAX_SKILL_FILES ? [...found.slice(0, MAX_SKILL_FILES), "..."] : found;
}
