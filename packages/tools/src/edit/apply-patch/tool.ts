import type { Access, GuardedTool } from "../../contract/access.ts";
import { defineEntryTool } from "../../contract/define-tool.ts";
import type { ToolEnv } from "../../contract/env.ts";
import { counted } from "../../text/text.ts";
import { EditError } from "../error.ts";
import { checkText } from "../plan.ts";
import { type EditDetails, writableTarget } from "../tool.ts";
import { applyPatchEntry } from "./entry.ts";
import { parsePatch, type PatchFile } from "./patch-text.ts";

/** A patch that is longer is refused, in UTF-16 units. */
export const MAX_PATCH_CHARS: number = 4 * 1024 * 1024;
/** So many files go into one patch. */
export const MAX_PATCH_FILES = 100;

/** What a patch did, for the application: a file each, in the order of the patch. */
export interface PatchDetails {
  files: (EditDetails & { type: PatchFile["type"]; movedTo?: string })[];
}

/**
 * Applies a patch to any number of files: all of it or nothing. Places are found as
 * `edit` finds them; of several, only the `@@` lines of the patch may decide.
 */
export function applyPatchTool(env: ToolEnv): GuardedTool {
  return defineEntryTool(applyPatchEntry, {
    description:
      "Apply a patch to one or more files, all of it or nothing. Format: a line `*** Begin Patch`; " +
      "for each file `*** Add File: path` and its lines, each with `+` in front; or `*** Delete File: " +
      "path`; or `*** Update File: path`, perhaps `*** Move to: path`, and changes: lines with ` ` " +
      "(stays), `-` (goes) or `+` (comes) in front, about 3 lines around each change, in the order of " +
      "the file, each begun by `@@` and, where the lines are at more than one place, the line of the " +
      "function or class that they are in; at last `*** End Patch`.",
    parameters: {
      type: "object",
      properties: { patch: { type: "string", description: "The whole patch" } },
      required: ["patch"],
    },
    async execute({ patch }, { signal }) {
      const { runPatch } = await import("./run.ts");
      return runPatch(env, patch, signal);
    },
    async access({ patch }): Promise<Access> {
      const files = readPatch(typeof patch === "string" ? patch : "");
      const targets = await checkPaths(env, files);
      const deletes = files.some(({ type }) => type === "delete");
      const summary = `Patch ${counted(files.length, "file")}: ${targets.join(", ")}`;
      const updated = files.filter(({ type }) => type === "update");
      // What is moved can be read where it is then.
      const reads = await Promise.all(updated.map(({ path }) => writableTarget(env, path)));
      return { kind: "write", targets, reads, summary, ...(deletes && { destructive: true }) };
    },
    async check({ patch }) {
      const { planPatch } = await import("./run.ts");
      await planPatch(env, typeof patch === "string" ? patch : "");
    },
  });
}

export function readPatch(patch: string): PatchFile[] {
  if (patch.length > MAX_PATCH_CHARS) {
    throw new EditError(
      "invalid",
      `The patch has ${counted(patch.length, "character")}; at most ${MAX_PATCH_CHARS} are taken. Split it.`,
    );
  }
  checkText(patch, "The patch");
  const files = parsePatch(patch);
  if (files.length > MAX_PATCH_FILES) {
    throw new EditError(
      "invalid",
      `The patch has ${files.length} files; at most ${MAX_PATCH_FILES} are taken. Split it.`,
    );
  }
  return files;
}

/** All that a patch would touch. A file that is named twice is an error: which comes first? */
export async function checkPaths(env: ToolEnv, files: readonly PatchFile[]): Promise<string[]> {
  const targets = new Map<string, number>();
  for (const file of files) {
    const moveTo = file.type === "update" ? file.moveTo : undefined;
    for (const path of moveTo === undefined ? [file.path] : [file.path, moveTo]) {
      const target = await writableTarget(env, path);
      const before = targets.get(target);
      if (before !== undefined) {
        throw new EditError(
          "invalid",
          `The patch names ${target} twice (lines ${before} and ${file.at}). Put all of its changes ` +
            "under one header.",
        );
      }
      targets.set(target, file.at);
    }
  }
  return [...targets.keys()];
}
