import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll } from "vitest";
import { buildProgram, type Program, type RunOptions } from "./program.ts";
import { type Script, type ScriptedService, scriptedService } from "./scripted-service.ts";
import { type ServedProgram, startServer } from "./served-program.ts";
import { openInTerminal, type TerminalOptions, type TerminalRun } from "./terminal-program.ts";

/** A server with a model service of its own. */
export interface AttachedServer extends ServedProgram {
  service: ScriptedService;
  /** The same server again, after it has ended. */
  restart(): Promise<AttachedServer>;
}

export interface ServeOptions {
  args?: readonly string[];
  /** Put into the folder before. */
  files?: Readonly<Record<string, string>>;
}

export interface AttachOptions extends TerminalOptions {
  args?: readonly string[];
  /** Default: the WebSocket of the server. */
  address?: string;
  /** What is in sight when it is open. Default: its first line. */
  shows?: string | RegExp;
}

export interface AttachWorld {
  readonly program: Program;
  /** Done after the test, the last first. */
  readonly cleanUps: (() => Promise<unknown>)[];
  serve(script: Script, options?: ServeOptions): Promise<AttachedServer>;
  /** `gyre attach` in a terminal of its own. */
  attach(server: ServedProgram, options?: AttachOptions): Promise<TerminalRun>;
  /** Two terminals with the same new session in sight; `wish` is for that session. */
  attachTwice(
    script: Script,
    options?: ServeOptions & { wish?: readonly string[]; rows?: number },
  ): Promise<{ server: AttachedServer; one: TerminalRun; other: TerminalRun }>;
}

/** `gyre serve` and `gyre attach` for the tests of a file, as they are built. */
export function attachWorld(): AttachWorld {
  const built: { program?: Program } = {};
  beforeAll(async () => {
    built.program = await buildProgram();
  });
  afterAll(() => built.program?.remove());
  const cleanUps: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  });
  const start = async (
    service: ScriptedService,
    args: readonly string[],
    options: RunOptions,
  ): Promise<AttachedServer> => {
    const server = await startServer(world.program, args, { service, ...options });
    cleanUps.push(() => {
      server.run.kill("SIGKILL");
      return server.run.end;
    });
    const { home, cwd } = server.run;
    const again = [...args.filter((arg) => arg !== "--port"), "--port", String(server.port)];
    return { ...server, service, restart: () => start(service, again, { home, cwd }) };
  };
  const world: AttachWorld = {
    cleanUps,
    get program() {
      if (!built.program) throw new Error("It is not built yet.");
      return built.program;
    },
    async serve(script, { args = [], files = {} } = {}) {
      const service = await scriptedService(script);
      cleanUps.push(() => service.close());
      const home = await world.program.makeHome();
      const cwd = join(home, "shop");
      for (const [name, text] of Object.entries(files)) {
        mkdirSync(dirname(join(cwd, name)), { recursive: true });
        writeFileSync(join(cwd, name), text);
      }
      return start(service, args, { home, cwd });
    },
    async attach(server, { args = [], address, shows, ...options } = {}) {
      const url = address ?? `ws://127.0.0.1:${server.port}`;
      const place = { rows: 20, ...options, env: { GYRE_TOKEN: server.token, ...options.env } };
      const run = await openInTerminal(world.program, ["attach", url, ...args], place);
      cleanUps.push(() => {
        run.kill();
        return run.end;
      });
      await run.until(shows ?? /gyre \d/);
      return run;
    },
    async attachTwice(script, { wish = [], rows = 20, ...options } = {}) {
      const server = await world.serve(script, options);
      const one = await world.attach(server, { args: ["--cwd", ".", ...wish], rows });
      const other = await world.attach(server, { shows: "A new session", rows });
      other.press("enter");
      await other.until(/gyre \d/);
      return { server, one, other };
    },
  };
  return world;
}
