import { toResult } from "@gyre/agent";
import { existsSync, realpathSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { grantNetwork } from "../web/proxy/grants.ts";
import { modelText } from "../testing/model-text.ts";
import { openToolset, type Toolset } from "../toolset.ts";

let folder: string;
let tools: Toolset;
let server: Server;
let port: number;
let seen: string[];
let asked: string[];

beforeEach(async () => {
  folder = realpathSync(await mkdtemp(join(tmpdir(), "gyre-domains-")));
  await mkdir(join(folder, "work"));
  seen = [];
  asked = [];
  server = createServer((incoming, response) => {
    seen.push(`${incoming.method} ${incoming.url}`);
    response.end('{"name":"part","versions":{},"dist-tags":{}}');
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  port = (server.address() as AddressInfo).port;
  tools = await openToolset({
    root: join(folder, "work"),
    tools: ["shell", "jobs"],
    stateFolder: join(folder, "state"),
    domains: [`127.0.0.1:${port}`, "*.allowed.invalid"],
    decideHost(host, at) {
      asked.push(`${host}:${at}`);
      return Promise.resolve(true);
    },
  });
});
afterEach(async () => {
  await tools.close();
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true, force: true });
});

async function shell(command: string, more: Record<string, unknown> = {}): Promise<string> {
  const tool = tools.registry.get("shell");
  if (!tool) throw new Error("There is no shell.");
  const { signal } = new AbortController();
  const result = await tool.execute(
    { command, ...more },
    {
      id: "1",
      signal,
      update: () => {},
      messages: [],
      host: { call: () => Promise.reject(new Error("not here")) },
    },
  );
  return modelText(toResult("shell", result));
}

describe.runIf(existsSync("/usr/bin/curl"))("domains of commands", { tags: "bubblewrap" }, () => {
  it("are reached by the proxy alone, with the exit code of the command", async () => {
    const url = `http://127.0.0.1:${port}/page`;
    expect(await shell(`curl -s --noproxy '' ${url}; exit 3`)).toMatch(
      /^Exit code 3\.\n[^]*"name":"part"/,
    );
    expect(seen).toEqual(["GET /page"]);
    expect(await shell(`curl -s --noproxy '*' ${url} || echo unreachable`)).toContain(
      "unreachable",
    );
    expect(seen).toHaveLength(1);
  });

  it("are all that is reached: the result says what was denied, and what to set", async () => {
    const text = await shell(
      "curl -sS https://user:hunter22@other.invalid/secret; curl -sS http://169.254.169.254/latest",
    );
    expect(text).toContain(
      "The sandbox denied a connection to other.invalid: the user can allow it with the setting `domains`.",
    );
    expect(text).toContain("denied a connection to 169.254.169.254:");
    expect(text).not.toContain("hunter22");
  });

  it("are asked about where the use of the network was approved, but for those that the approval covers", async () => {
    const command = "curl -sS https://tea.invalid; curl -sS https://named.invalid";
    expect(await shell(command)).toContain("denied a connection to tea.invalid");
    expect(asked).toEqual([]);
    grantNetwork(tools.env.workspace, "1", ["named.invalid"]);
    expect(await shell(command)).not.toContain("denied a connection to tea.invalid");
    expect(asked).toEqual(["tea.invalid:443"]);
    await shell(command);
    expect(asked).toHaveLength(1);
  });

  it("are found by npm", async () => {
    const text = await shell(
      `NO_PROXY= no_proxy= npm_config_noproxy= npm view part name --registry http://127.0.0.1:${port}/ --fetch-retries 0`,
    );
    expect(seen, text).toContain("GET /part");
  });

  it("are there for a job as long as it runs", async () => {
    await shell(
      `until [ -e go ]; do sleep 0.05; done; curl -s --noproxy '' http://127.0.0.1:${port}/job`,
      {
        background: true,
      },
    );
    await shell("touch go");
    const [job] = tools.jobs.list();
    await tools.jobs.ended(job?.id ?? "");
    expect(seen).toEqual(["GET /job"]);
    const sockets = async (): Promise<string[]> =>
      (await readdir(tools.env.spoolFolder)).filter((name) => name.startsWith("proxy-"));
    await expect.poll(sockets, { interval: 10 }).toEqual([]);
  });

  it("end a command by its signal as before", async () => {
    expect(await shell("kill -TERM $$")).toMatch(/^Exit code 143\./);
  });
});
