import { resolve } from "node:path";
import type { Middleware, ToolInvocation } from "@gyre/agent";
import { findNamedFiles, isReadingCall } from "../file-history/call-files.ts";
import { describeCode, readSmallFile } from "../settings/file.ts";
import { realPath } from "../settings/project-file.ts";
import { type AgentTexts, hashText } from "./agent-texts.ts";
import { CallNote } from "./call-note.ts";
import {
  type GuidanceFiles,
  GuidanceFinder,
  type GuidancePlaces,
  isGuidancePath,
} from "./guidance-files.ts";

export interface GuidanceWatchOptions {
  places: GuidancePlaces;
  texts: AgentTexts;
  /** The texts that are in use, by their real paths: one that an agent writes again is the user's all the same. */
  inUse: ReadonlyMap<string, Buffer>;
  /** The folders of the skills that are in use, with all links followed. */
  skills: readonly string[];
  /** Where it is noted that calls run. */
  noteFolder: string;
  /** Whether a job runs in the background. */
  isJobRunning: () => boolean;
  /** Called once, where nothing can be recorded. */
  warn: (text: string) => void;
}

/**
 * Records which texts for agents the calls of an agent write: they are not used before the user
 * has seen them. What changes between calls is the user's own, unless a job ran meanwhile.
 */
export class GuidanceWatch {
  readonly middleware: Middleware;
  readonly #options: GuidanceWatchOptions;
  readonly #finder: GuidanceFinder;
  readonly #note: CallNote;
  /** What was there before the calls that run, and the jobs that ran since. */
  #before: GuidanceFiles | undefined;
  /** What the last look found, in the same run: further texts that come between calls are rare. */
  #last: GuidanceFiles | undefined;
  /** Calls under way that may change anything. */
  #active = 0;
  #isWarned = false;

  constructor(options: GuidanceWatchOptions) {
    this.#options = options;
    this.#finder = new GuidanceFinder(options.places);
    this.#note = new CallNote(options.noteFolder);
    this.middleware = {
      run: () => {
        // What came between runs is the user's.
        this.#last = undefined;
      },
      tool: (call, next) => this.#around(call, next),
    };
  }

  /** To be called when no job runs any more. */
  close(): void {
    if (this.#before) this.#recordSince(this.#before);
    this.#before = undefined;
    this.#note.remove();
  }

  async #around<T>(call: ToolInvocation, next: () => Promise<T>): Promise<T> {
    if (await isReadingCall(call)) return next();
    const named = await findNamedFiles(call);
    return named ? this.#aroundNamed(named, next) : this.#aroundAny(next);
  }

  async #aroundNamed<T>(names: readonly string[], next: () => Promise<T>): Promise<T> {
    const [root] = this.#options.places.whole;
    const paths = names.map((name) => resolve(root, name)).filter((path) => this.#isGuidance(path));
    if (paths.length === 0) return next();
    const before = new Map(paths.map((path) => [path, readContent(path)]));
    const note = new CallNote(this.#options.noteFolder);
    note.write({ files: this.#finder.refresh(before), inUse: this.#hashesInUse() });
    try {
      return await next();
    } finally {
      for (const [path, was] of before) this.#record(path, was);
      note.remove();
    }
  }

  #isGuidance(path: string): boolean {
    const { inUse, skills } = this.#options;
    // A link may have a text for agents lead to a file of any name.
    if (isGuidancePath(path) || inUse.has(path)) return true;
    return [...skills, ...this.#finder.linked].some((folder) => path.startsWith(`${folder}/`));
  }

  async #aroundAny<T>(next: () => Promise<T>): Promise<T> {
    if (!this.#before) {
      this.#before = this.#last ? this.#finder.refresh(this.#last) : this.#finder.find();
      this.#writeNote(this.#before);
    }
    const before = this.#before;
    this.#active++;
    try {
      return await next();
    } finally {
      this.#active--;
      const after = this.#recordSince(before);
      if (this.#active === 0) {
        this.#before = this.#options.isJobRunning() ? after : undefined;
        if (this.#before) this.#writeNote(this.#before);
        else this.#note.remove();
      }
    }
  }

  #writeNote(files: GuidanceFiles): void {
    this.#note.write({ places: this.#options.places, files, inUse: this.#hashesInUse() });
  }

  #hashesInUse(): string[] {
    return [...this.#options.inUse.values()].map(hashText);
  }

  #recordSince(before: GuidanceFiles): GuidanceFiles {
    const after = this.#finder.find();
    for (const [path, identity] of after) {
      if (before.get(path) !== identity) this.#record(realPath(path), undefined);
    }
    this.#last = after;
    return after;
  }

  /** Records what is at a path now, if it is not what was there before, nor what is in use. */
  #record(path: string, was: Buffer | undefined): void {
    const { inUse, texts } = this.#options;
    const content = readContent(path);
    if (!content || was?.equals(content)) return;
    const before = inUse.get(path) ?? was;
    if ([...inUse.values()].some((text) => text.equals(content))) return;
    try {
      texts.add(content, { path, ...(before && { before: before.toString("utf8") }) });
    } catch (error) {
      if (this.#isWarned) return;
      this.#isWarned = true;
      this.#options.warn(
        `The agent has changed ${path}, which cannot be recorded (${describeCode(error)}). Look at it: it is used from the next start on.`,
      );
    }
  }
}

function readContent(path: string): Buffer | undefined {
  const read = readSmallFile(path);
  return read && "content" in read ? read.content : undefined;
}
