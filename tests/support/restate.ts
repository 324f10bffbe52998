import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as later } from "node:timers/promises";

const START_MS = 60_000;
const LOOK_MS = 50;

/** A server of Restate of a test's own. */
export interface RestateServer {
  readonly ingress: string;
  readonly admin: string;
  remove(): Promise<void>;
}

/** Starts a server in a folder of its own. */
export async function startRestate(program: string): Promise<RestateServer> {
  const folder = await mkdtemp(join(tmpdir(), "gyre-restate-"));
  const [own, ingress, admin] = [await findPort(), await findPort(), await findPort()];
  const args = ["--no-logo", "--listen-mode", "tcp", "--base-dir", join(folder, "data")];
  args.push("--bind-address", `127.0.0.1:${own}`, "--default-num-partitions", "4");
  const child = spawn(program, [...args, "--log-filter", "off"], {
    cwd: folder,
    stdio: "ignore",
    env: {
      ...process.env,
      RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
      RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
      RESTATE_DISABLE_TELEMETRY: "true",
    },
  });
  const server: RestateServer = {
    ingress: `http://127.0.0.1:${ingress}`,
    admin: `http://127.0.0.1:${admin}`,
    remove: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        const exited = once(child, "exit");
        child.kill("SIGKILL");
        await exited;
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
  try {
    await waitFor(
      () => child.exitCode,
      `${server.admin}/health`,
      `${server.ingress}/restate/health`,
    );
  } catch (error) {
    await server.remove();
    throw error;
  }
  return server;
}

async function waitFor(readCode: () => number | null, ...urls: string[]): Promise<void> {
  const until = performance.now() + START_MS;
  for (const url of urls) {
    for (;;) {
      const isUp = await fetch(url).then(
        ({ ok }) => ok,
        () => false,
      );
      if (isUp) break;
      const code = readCode();
      if (code !== null) throw new Error(`The server of Restate ended with ${code}.`);
      if (performance.now() > until) throw new Error("The server of Restate does not start.");
      await later(LOOK_MS);
    }
  }
}

async function findPort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (typeof address === "object" && address) return address.port;
  throw new Error("There is no port.");
}
