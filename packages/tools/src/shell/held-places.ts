import { lstatSync } from "node:fs";
import type { Workspace } from "../workspace/workspace.ts";

/** The protected places that one command is to hold. */
export interface HeldPlaces {
  places: readonly string[];
  /** To be called when the command has ended. */
  end(): void;
}

interface Running {
  commands: number;
  /** By place: which file or folder it was; nothing for a missing one, in whose place an empty folder is mounted. */
  held: Map<string, string | undefined>;
}

const running = new WeakMap<Workspace, Running>();

/**
 * Chooses which places are mounted for a command. bwrap follows links, and a command that runs
 * already could put one in the place of a folder between our look and its mount: then something
 * outside would be mounted, and could be changed. What is a mount for a command it cannot replace.
 * So as long as commands run, the places of the first of them are held, and no others.
 */
export function holdPlaces(workspace: Workspace, places: readonly string[]): HeldPlaces {
  const known = running.get(workspace);
  const state: Running =
    known && known.commands > 0
      ? known
      : { commands: 0, held: new Map(places.map((path) => [trimmed(path), identify(path)])) };
  running.set(workspace, state);
  state.commands += 1;
  let isOpen = true;
  return {
    places: places.filter((path) => isHeld(state, path)),
    end() {
      if (isOpen) state.commands -= 1;
      isOpen = false;
    },
  };
}

/** What the user puts in the place of one is a mount for no command. */
function isHeld({ held }: Running, path: string): boolean {
  const place = trimmed(path);
  if (!held.has(place)) return false;
  const identity = held.get(place);
  return identity === undefined || identity === identify(path);
}

/** A missing folder is written with a slash. */
function trimmed(path: string): string {
  return path.replace(/\/$/, "");
}

function identify(path: string): string | undefined {
  const stats = lstatSync(trimmed(path), { throwIfNoEntry: false });
  return stats && `${stats.dev} ${stats.ino}`;
}
