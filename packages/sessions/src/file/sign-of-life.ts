import { spawnSync } from "node:child_process";
import { closeSync, openSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";

/** How long a process has to answer whether another one lives. */
const PROBE_MS = 5000;
const REFUSED = 3;
const UNKNOWN = 4;

/** Connects to a socket. The kernel accepts for a process that listens, also for one that is stopped. */
const PROBE = `require("node:net")
  .connect(process.argv[1])
  .on("connect", () => process.exit(0))
  .on("error", ({ code }) => process.exit(code === "ECONNREFUSED" ? ${REFUSED} : ${UNKNOWN}));`;

/**
 * A socket that a process listens on as long as it holds a lock. Process ids mean nothing in another
 * container; whether a process of this machine listens on a socket is known in all of them.
 */
export interface SignOfLife {
  end(): void;
}

/** Listens beside a lock, before the lock is there. Undefined where there are no such sockets. */
export function giveSignOfLife(lock: string, token: string): SignOfLife | undefined {
  // Only Linux has spaces of processes.
  if (process.platform !== "linux") return undefined;
  const server = createServer((socket) => socket.destroy());
  // A file system without sockets: then this lock is judged by its process id alone.
  server.on("error", () => server.close());
  const folder = openSync(dirname(lock), "r");
  try {
    // A path of a socket has at most 107 bytes, and that of a folder may be longer.
    server.listen(`/proc/self/fd/${folder}/${socketName(token)}`);
  } finally {
    closeSync(folder);
  }
  if (!server.listening) return undefined;
  server.unref();
  return {
    end() {
      server.close();
      removeSignOfLife(lock, token);
    },
  };
}

/** Whether the process that gave a sign of life on this machine has certainly ended. */
export function hasNoSignOfLife(lock: string, token: string): boolean {
  const args = ["-e", PROBE, `./${socketName(token)}`];
  const { status } = spawnSync(process.execPath, args, {
    cwd: dirname(lock),
    env: {},
    stdio: "ignore",
    timeout: PROBE_MS,
  });
  return status === REFUSED;
}

export function removeSignOfLife(lock: string, token: string): void {
  rmSync(join(dirname(lock), socketName(token)), { force: true });
}

function socketName(token: string): string {
  return `.${token}.alive`;
}
