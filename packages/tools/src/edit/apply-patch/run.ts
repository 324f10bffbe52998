import type { AgentToolResult } from "@gyre/agent";
import type { ToolEnv } from "../../contract/env.ts";
import { commonEnd, readIndent, type Line, splitLines } from "../../text/line-ends.ts";
import { counted, textResult } from "../../text/text.ts";
import { type FileIdentity, type FileInfo, PathError } from "../../workspace/workspace.ts";
import { cutDiff } from "../diff.ts";
import { EditError } from "../error.ts";
import { findMatch, type MatchOutcome } from "../match.ts";
import { type EditedFile, editedFile, onlyMatch, type PlacedEdit, planPlaced } from "../plan.ts";
import { createDetails, formatChangedLines, listNotes, readForEdit } from "../run.ts";
import type { PatchFile, PatchHunk } from "./patch-text.ts";
import { checkPaths, readPatch, type PatchDetails } from "./tool.ts";

/** Applies a patch, all of it or nothing. */
export async function runPatch(
  env: ToolEnv,
  patch: string,
  signal: AbortSignal,
): Promise<AgentToolResult> {
  const steps = await planPatch(env, patch);
  signal.throwIfAborted();
  await takeSteps(env, steps);
  for (const step of steps) step.note();
  const text = steps.flatMap(({ report }) => report).join("\n");
  return textResult(text, {
    files: steps.map(({ details }) => details),
  } satisfies PatchDetails);
}

/** What each file would become as all of them are now. Changes nothing. */
export async function planPatch(env: ToolEnv, patch: string): Promise<readonly Step[]> {
  const files = readPatch(patch);
  const steps: Step[] = [];
  for (const file of files) steps.push(await planFile(env, file));
  await checkPaths(env, files);
  return steps;
}

// ---- what is done to one file

/** A change of one file that is checked and not yet made. */
interface Step {
  /** Makes it; gives what takes it back. Before it throws nothing of it is done. */
  take(): Promise<Undo[]>;
  /** Records in `seen` what is there now. */
  note(): void;
  report: string[];
  details: PatchDetails["files"][number];
}

interface Undo {
  path: string;
  run: () => Promise<unknown>;
}

async function planFile(env: ToolEnv, file: PatchFile): Promise<Step> {
  if (file.type === "add") return planAdd(env, file);
  if (file.type === "delete") return planDelete(env, file);
  return planUpdate(env, file);
}

async function planAdd(env: ToolEnv, file: PatchFile & { type: "add" }): Promise<Step> {
  const path = await absentTarget(env, file.path, file.at);
  const lines = file.content.split("\n").length - 1;
  return {
    take: async () => [await made(env, path, file.content)],
    note: () => env.seen.note(path, file.content),
    report: [`Added ${path} (${counted(lines, "line")}).`],
    details: { type: "add", path, diff: wholeDiff(path, "+", file.content), edits: [] },
  };
}

async function planDelete(env: ToolEnv, file: PatchFile & { type: "delete" }): Promise<Step> {
  await refuseLink(env, file);
  const { text, info } = await readForEdit(env, file.path);
  const { path } = info;
  const { isRead, seen } = editedFile(path, text, env.seen.get(path)?.text);
  if (seen) {
    throw new EditError(
      "changed",
      `Line ${file.at} of the patch: ${path} has changed since you read it. Read it again before you ` +
        "delete it. Nothing was changed.",
    );
  }
  return {
    take: async () => [await removed(env, info, text)],
    note: () => env.seen.forget(path),
    report: [`Deleted ${path}.`, ...(isRead ? [] : ["You had not read this file before."])],
    details: { type: "delete", path, diff: wholeDiff(path, "-", text), edits: [] },
  };
}

async function planUpdate(env: ToolEnv, file: PatchFile & { type: "update" }): Promise<Step> {
  if (file.moveTo !== undefined) await refuseLink(env, file);
  const { text, info } = await readForEdit(env, file.path);
  const { path } = info;
  const edited = editedFile(path, text, env.seen.get(path)?.text);
  const plan =
    file.hunks.length === 0
      ? { content: text, edits: [], isChangedElsewhere: false }
      : planPlaced(edited, placeHunks(edited, file.hunks));
  const target = file.moveTo === undefined ? path : await absentTarget(env, file.moveTo, file.at);
  const notes = listNotes(plan, edited.isRead);
  const changes =
    plan.edits.length === 0
      ? ""
      : `Applied ${counted(plan.edits.length, "change")} to ${path} (${formatChangedLines(plan)}).`;
  const moved = target === path ? "" : `Moved ${path} to ${target}.`;
  return {
    take: async () => {
      if (target === path) {
        return [await rewritten(env, file.path, info, text, plan.content)];
      }
      const undoMade = await made(env, target, plan.content, info.mode);
      try {
        return [undoMade, await removed(env, info, text)];
      } catch (error) {
        await undoMade.run();
        throw error;
      }
    },
    note: () => {
      if (target !== path) env.seen.forget(path);
      env.seen.note(target, plan.content);
    },
    report: [[changes, moved].filter((part) => part !== "").join(" "), ...notes],
    details: {
      type: "update",
      ...createDetails(path, text, plan),
      ...(target !== path && { movedTo: target }),
    },
  };
}

async function absentTarget(env: ToolEnv, path: string, at: number): Promise<string> {
  const resolved = await env.workspace.resolve(path);
  if (!resolved.exists) return resolved.path;
  throw new EditError(
    "invalid",
    `Line ${at} of the patch: ${resolved.path} is there already. Use "*** Update File:" to change it. ` +
      "Nothing was changed.",
  );
}

/** Removing a link would leave its file, and putting it back would not bring the link. */
async function refuseLink(env: ToolEnv, { path, at }: PatchFile): Promise<void> {
  const itself = await env.workspace.resolve(path, { keepLink: true });
  const target = await env.workspace.resolve(path);
  if (itself.path === target.path) return;
  throw new EditError(
    "invalid",
    `Line ${at} of the patch: ${itself.path} is a link to ${target.path}. Name the file itself. ` +
      "Nothing was changed.",
  );
}

function wholeDiff(path: string, mark: "+" | "-", content: string): string {
  const [from, to] = mark === "+" ? ["/dev/null", `b/${path}`] : [`a/${path}`, "/dev/null"];
  const lines = splitLines(content).map((line) => `${mark}${line.text}\n`);
  return cutDiff(`--- ${from}\n+++ ${to}\n${lines.join("")}`);
}

// ---- doing it, and taking it back

/** Makes all changes. When one fails, those before it are taken back. */
async function takeSteps(env: ToolEnv, steps: readonly Step[]): Promise<void> {
  const undos: Undo[] = [];
  for (const step of steps) {
    try {
      undos.push(...(await step.take()));
    } catch (error) {
      throw await takenBack(env, undos, error);
    }
  }
}

async function takenBack(env: ToolEnv, undos: readonly Undo[], error: unknown): Promise<Error> {
  const left: string[] = [];
  for (const { path, run } of undos.toReversed()) {
    try {
      await run();
    } catch (cause) {
      // What is there now is not known: the agent has to look.
      env.seen.forget(path);
      left.push(`${path} (${cause instanceof Error ? cause.message : String(cause)})`);
    }
  }
  const what = error instanceof Error ? error.message : String(error);
  const state =
    left.length === 0
      ? "Nothing was changed: the files before it were put back."
      : `These files could not be put back and are changed: ${left.join("; ")}.`;
  return new Error(`The patch could not be applied: ${what} ${state}`, { cause: error });
}

async function rewritten(
  env: ToolEnv,
  path: string,
  info: FileInfo,
  before: string,
  content: string,
): Promise<Undo> {
  const now = await env.workspace.write(path, content, { expected: info });
  return { path: info.path, run: () => env.workspace.write(path, before, { expected: now }) };
}

async function made(env: ToolEnv, path: string, content: string, mode?: number): Promise<Undo> {
  const options = { expected: null, ...(mode !== undefined && { mode: mode & 0o777 }) };
  const now = await env.workspace.write(path, content, options);
  return {
    path,
    run: async () => {
      await checkSame(env, path, now);
      await env.workspace.remove(path);
    },
  };
}

async function removed(env: ToolEnv, info: FileInfo, before: string): Promise<Undo> {
  const { path, mode } = info;
  await checkSame(env, path, info);
  await env.workspace.remove(path);
  return {
    path,
    run: () => env.workspace.write(path, before, { expected: null, mode: mode & 0o777 }),
  };
}

async function checkSame(env: ToolEnv, path: string, expected: FileIdentity): Promise<void> {
  const now = await env.workspace.stat(path);
  const isSame =
    now.ino === expected.ino &&
    now.dev === expected.dev &&
    now.size === expected.size &&
    now.mtimeNs === expected.mtimeNs;
  if (!isSame)
    throw new PathError("changed", path, `${path} was changed by another program meanwhile.`);
}

// ---- the places of changes

/** The place of each change, in the order of the file. */
function placeHunks(file: EditedFile, hunks: readonly PatchHunk[]): PlacedEdit[] {
  let behind = 0;
  return hunks.map((hunk) => {
    const name = `the change at line ${hunk.at} of the patch`;
    const placed = placeHunk(file, hunk, name, behind);
    if (placed.start < behind) {
      throw new EditError(
        "overlap",
        `${name} is before or within the one above it in ${file.path}. Changes are in the order of the file.`,
      );
    }
    behind = placed.end;
    return placed;
  });
}

function placeHunk(file: EditedFile, hunk: PatchHunk, name: string, behind: number): PlacedEdit {
  if (hunk.old.length === 0) return { ...appended(file, hunk, name), name };
  const edit = { oldText: asText(hunk.old), newText: asText(hunk.next) };
  const match = onlyMatch(file, edit, `the old text of ${name}`, (text) => {
    const search = (accept: (first: number) => boolean): MatchOutcome =>
      findMatch(text, edit, {
        wholeLines: true,
        accept: (first, after) => accept(first) && (!hunk.isAtEnd || after === text.lines.length),
      });
    if (hunk.headers.length === 0) return search(() => true);
    const isNow = text === file.content;
    const scopes = scopesBeneath(text.lines, hunk.headers);
    if (scopes.length === 0 && isNow) throw noHeader(file, hunk);
    // What the agent saw says nothing about where the change before was made now.
    return inScopes(text.lines, scopes, isNow ? behind : 0, search);
  });
  return { ...match, name };
}

function asText(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join("");
}

/** Lines that come without any that are there already: only the end of a file is a place for them. */
function appended(
  { path, content }: EditedFile,
  hunk: PatchHunk,
  name: string,
): Omit<PlacedEdit, "name"> {
  if (!hunk.isAtEnd && content.text !== "") {
    throw new EditError(
      "unclear",
      `${name} has only "+" lines: it says not where in ${path}. Add a line that is there, with a ` +
        'space in front, or "*** End of File" behind.',
    );
  }
  const end = commonEnd(content.lines) || "\n";
  const at = content.text.length;
  const open = content.lines.at(-1)?.end === "" ? end : "";
  const added = hunk.next.map((line) => line + end).join("");
  // A file without a line end at its end stays so.
  const replacement = open === "" ? added : open + added.slice(0, -end.length);
  return { start: at, end: at, replacement, tolerance: "exact" };
}

/** Lines from `from` to `to`, without it. */
interface Scope {
  from: number;
  to: number;
}

function noHeader({ path }: EditedFile, { at, headers }: PatchHunk): EditError {
  return new EditError(
    "missing",
    `Line ${at} of the patch: there is no line ${JSON.stringify(headers.join(" / "))} in ${path}. ` +
      'Copy the line behind "@@" from the file. Nothing was changed.',
  );
}

/**
 * The place within what the `@@` lines begin. Where they begin nothing (a text, a list)
 * it is what is behind them.
 */
function inScopes(
  lines: readonly Line[],
  scopes: readonly Scope[],
  behind: number,
  search: (accept: (first: number) => boolean) => MatchOutcome,
): MatchOutcome {
  const isFree = (line: number): boolean => (lines[line]?.start ?? 0) >= behind;
  const within = search(
    (line) => isFree(line) && scopes.some(({ from, to }) => line >= from && line < to),
  );
  const isFlat = scopes.every((scope) => isEmpty(lines, scope));
  if (within.type !== "missing" || !isFlat) return within;
  const first = scopes[0]?.from ?? lines.length;
  return search((line) => isFree(line) && line >= first);
}

/** What the last of the headers begins, beneath those before it. */
function scopesBeneath(lines: readonly Line[], headers: readonly string[]): Scope[] {
  let scopes: Scope[] = [{ from: 0, to: lines.length }];
  for (const header of headers) {
    scopes = scopes.flatMap((scope) => findScopes(lines, scope, header));
  }
  return scopes;
}

function isEmpty(lines: readonly Line[], { from, to }: Scope): boolean {
  return lines.slice(from + 1, to).every((line) => line.text.trim() === "");
}

/** What begins with a line like this: from it to the next line that is as far out. */
function findScopes(lines: readonly Line[], { from, to }: Scope, header: string): Scope[] {
  const equal = linesLike(lines, { from, to }, (text) => text === header);
  const begun =
    equal.length > 0 ? equal : linesLike(lines, { from, to }, (text) => text.startsWith(header));
  return begun.map((at) => ({ from: at, to: scopeEnd(lines, at, to) }));
}

function linesLike(
  lines: readonly Line[],
  { from, to }: Scope,
  isLike: (text: string) => boolean,
): number[] {
  const found: number[] = [];
  for (let at = from; at < to; at++) if (isLike(lines[at]?.text.trim() ?? "")) found.push(at);
  return found;
}

/** A bracket that closes belongs to what it closes. */
const CLOSES = /^[)\]}]/;

function scopeEnd(lines: readonly Line[], at: number, to: number): number {
  const outer = readIndent(lines[at]?.text ?? "").length;
  for (let index = at + 1; index < to; index++) {
    const text = lines[index]?.text ?? "";
    const trimmed = text.trim();
    if (trimmed !== "" && readIndent(text).length <= outer && !CLOSES.test(trimmed)) return index;
  }
  return to;
}
