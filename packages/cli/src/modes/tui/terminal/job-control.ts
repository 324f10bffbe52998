import { readFileSync } from "node:fs";

/** What the kernel says of a process: its parent, group and session. */
interface Place {
  parent: number;
  group: number;
  session: number;
}

/**
 * Whether a shell would get the terminal back if this program were stopped: above it, in the same session, is a process of
 * another group. Where that is not known, it is taken for granted.
 */
export function hasShell(platform: NodeJS.Platform = process.platform): boolean {
  if (platform === "win32") return false;
  const own = readPlace(process.pid);
  if (!own) return platform !== "linux";
  for (let above = readPlace(own.parent); above; above = readPlace(above.parent)) {
    if (above.session !== own.session) return false;
    if (above.group !== own.group) return true;
  }
  return false;
}

/** Stops the program and what started it with it, as the terminal does where it handles the key itself. */
export function suspend(): void {
  process.kill(0, "SIGTSTP");
}

function readPlace(pid: number): Place | undefined {
  try {
    // The name of the program is in parentheses, and may hold any character.
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [, parent, group, session] = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
    if (parent === undefined || group === undefined || session === undefined) return undefined;
    return { parent, group, session };
  } catch {
    // There is no such process, or no such file on this system.
    return undefined;
  }
}
