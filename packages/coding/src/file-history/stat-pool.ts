import { lstatSync } from "node:fs";
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { createStatShard, type FileGroup, type StatShard } from "./stat-shard.ts";

/** So many files are looked at here, in about 10 ms; more by workers. */
export const MAX_OWN_FILES = 3_000;
/** More find little more to do at the same time: all of them ask one kernel. */
const MAX_WORKERS = 4;

/** What a worker is asked. */
type Request =
  | { type: "set"; groups: readonly FileGroup[] }
  | { type: "drop"; keys: readonly string[] }
  | { type: "look"; keys: readonly string[] | undefined };

/** The text of a worker: `createStatShard` behind messages. Looks are answered in their order. */
const WORKER_TEXT = `"use strict";
const { lstatSync } = require("node:fs");
const { parentPort, workerData } = require("node:worker_threads");
const shard = (${createStatShard.toString()})(lstatSync, workerData);
parentPort.on("message", (request) => {
  if (request.type === "set") shard.set(request.groups);
  else if (request.type === "drop") shard.drop(request.keys);
  else parentPort.postMessage(shard.look(request.keys));
});`;

/** A shard in a thread of its own. */
class RemoteShard {
  /** How many files it has. */
  files = 0;
  readonly #worker: Worker;
  readonly #waiting: { settle: (paths: string[]) => void; fail: (error: unknown) => void }[] = [];
  #failure: unknown;

  constructor(root: string) {
    this.#worker = new Worker(WORKER_TEXT, { eval: true, workerData: root, execArgv: [] });
    // It does not keep the process running, unless a look waits for it.
    this.#worker.unref();
    this.#worker.on("message", (paths: string[]) => {
      this.#waiting.shift()?.settle(paths);
      if (this.#waiting.length === 0) this.#worker.unref();
    });
    this.#worker.on("error", (error) => this.#fail(error));
    this.#worker.on("exit", () => this.#fail(new Error("The thread that looks at files ended.")));
  }

  send(request: Exclude<Request, { type: "look" }>): void {
    this.#worker.postMessage(request);
  }

  look(keys: readonly string[] | undefined): Promise<string[]> {
    return new Promise((settle, fail) => {
      if (this.#failure !== undefined) {
        fail(this.#failure);
        return;
      }
      this.#waiting.push({ settle, fail });
      this.#worker.ref();
      const request: Request = { type: "look", keys };
      this.#worker.postMessage(request);
    });
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
    for (const { fail } of this.#waiting.splice(0)) fail(error);
  }
}

/**
 * Looks at many files and finds those that changed. Where there are many, threads share them:
 * the time that a look takes is that of the system, file by file, and this thread stays free.
 */
export class StatPool {
  readonly #root: string;
  readonly #own: StatShard;
  /** By the key of a group: which thread has it, and its files. */
  readonly #places = new Map<string, { shard: RemoteShard | undefined; group: FileGroup }>();
  #remotes: RemoteShard[] | undefined;
  #files = 0;
  readonly #maxOwnFiles: number;

  constructor(root: string, maxOwnFiles: number = MAX_OWN_FILES) {
    this.#root = root;
    this.#maxOwnFiles = maxOwnFiles;
    this.#own = createStatShard(lstatSync, root);
  }

  /** Whether other threads do the work. */
  get hasWorkers(): boolean {
    return this.#remotes !== undefined;
  }

  /** As `StatShard.set`. */
  set(groups: readonly FileGroup[]): void {
    const more = groups.reduce((sum, group) => sum + this.#countMore(group), 0);
    if (!this.#remotes && this.#files + more > this.#maxOwnFiles) this.#share();
    const remotes = this.#remotes;
    const sent = new Map<RemoteShard, FileGroup[]>(remotes?.map((remote) => [remote, []]));
    for (const group of groups) {
      const added = this.#countMore(group);
      this.#files += added;
      const least = remotes?.reduce((a, b) => (b.files < a.files ? b : a));
      const shard = this.#places.get(group.key)?.shard ?? least;
      this.#places.set(group.key, { shard, group });
      if (!shard) continue;
      shard.files += added;
      sent.get(shard)?.push(group);
    }
    if (!remotes) this.#own.set(groups);
    for (const [shard, some] of sent)
      if (some.length > 0) shard.send({ type: "set", groups: some });
  }

  #countMore({ key, names }: FileGroup): number {
    return names.length - (this.#places.get(key)?.group.names.length ?? 0);
  }

  drop(keys: readonly string[]): void {
    for (const key of keys) {
      const place = this.#places.get(key);
      if (!place) continue;
      this.#places.delete(key);
      this.#files -= place.group.names.length;
      if (!place.shard) this.#own.drop([key]);
      else {
        place.shard.files -= place.group.names.length;
        place.shard.send({ type: "drop", keys: [key] });
      }
    }
  }

  /** As `StatShard.look`. */
  async look(keys?: readonly string[]): Promise<string[]> {
    if (!this.#remotes) return this.#own.look(keys);
    const found = await Promise.all(this.#remotes.map((remote) => remote.look(keys)));
    return found.flat();
  }

  async close(): Promise<void> {
    await Promise.all(this.#remotes?.map((remote) => remote.close()) ?? []);
  }

  /** Moves all to threads. They have noted nothing yet, and report each file once. */
  #share(): void {
    const count = Math.min(MAX_WORKERS, availableParallelism());
    this.#remotes = Array.from({ length: count }, () => new RemoteShard(this.#root));
    const groups = [...this.#places.values()].map(({ group }) => group);
    this.#places.clear();
    this.#files = 0;
    this.#own.drop(groups.map(({ key }) => key));
    this.set(groups);
  }
}
