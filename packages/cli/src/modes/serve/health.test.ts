import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { PATIENCE, type ServedProgram, ServeWorld } from "../../testing/served-program.ts";
import { listenHealth } from "./health.ts";

const LIMIT_MS = 1000;

let world: ServeWorld;

beforeAll(async () => {
  world = await ServeWorld.open();
});

afterAll(() => world.remove());

beforeEach(() => world.begin());

afterEach(() => world.end());

/** Blocks the main thread on SIGUSR2, with no way back to its loop until the file is there. */
function blockUntil(file: string): string {
  const code = `import { existsSync } from "node:fs";
process.on("SIGUSR2", () => { while (!existsSync(${JSON.stringify(file)})); });`;
  return `data:text/javascript,${encodeURIComponent(code)}`;
}

function findHealth({ run }: ServedProgram): string | undefined {
  return /^Health at (\S+)$/m.exec(run.stdout)?.[1];
}

interface Health {
  status: number;
  ok: boolean;
  loopAgeMs: number;
}

async function readHealth(url: string): Promise<Health> {
  const response = await fetch(url);
  return { status: response.status, ...(await response.json()) };
}

/** What a socket gets for a text, to its end. */
function exchange(url: string, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = "";
    const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write(text));
    socket.on("data", (data) => (received += data.toString()));
    socket.on("error", reject).on("close", () => resolve(received));
  });
}

describe("--health-port", () => {
  it("answers while the main thread is blocked: 503 with the age of its loop, and 200 afterwards", async () => {
    const home = await world.program.makeHome();
    const file = join(home, "go-on");
    const server = await world.serve(["--health-port", "0", "--health-limit", "1"], {
      home,
      nodeOptions: ["--import", blockUntil(file)],
    });
    const health = findHealth(server) ?? "";
    expect(await readHealth(health)).toEqual({
      status: 200,
      ok: true,
      loopAgeMs: expect.any(Number),
    });
    server.run.kill("SIGUSR2");
    const busy = await expect
      .poll(() => readHealth(health), PATIENCE)
      .toMatchObject({ status: 503, ok: false })
      .then(() => readHealth(health));
    expect(busy.loopAgeMs).toBeGreaterThan(LIMIT_MS);
    // The main port answers nothing meanwhile.
    const main = fetch(`${server.url}/healthz`);
    const first = await Promise.race([main.then(() => "main"), readHealth(health)]);
    expect(first).toMatchObject({ status: 503 });
    writeFileSync(file, "");
    await expect.poll(() => readHealth(health), PATIENCE).toMatchObject({ status: 200, ok: true });
    expect((await main).status).toBe(200);
  });

  it("opens no port by default, and ends with the server", async () => {
    const plain = await world.serve();
    expect(findHealth(plain)).toBeUndefined();
    expect(plain.run.stderr).not.toContain('"health"');
    const server = await world.serve(["--health-port", "0"]);
    expect(await server.logged("listen")).toBeDefined();
    server.run.kill("SIGTERM");
    expect((await server.run.end).code).toBe(143);
    await expect(fetch(findHealth(server) ?? "")).rejects.toThrow("fetch failed");
  });

  it("a port that is in use is refused before anything is served", async () => {
    const first = await world.serve(["--health-port", "0"]);
    const { port } = new URL(findHealth(first) ?? "");
    const args = ["serve", "--port", "0", "--health-port", port];
    const { code, stdout, stderr } = await world.program.gyre(args, { service: world.service });
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain(
      `Port ${port} of 127.0.0.1 is in use. Choose another with --health-port`,
    );
  });
});

describe("listenHealth", () => {
  it("refuses other paths, other methods and what is not HTTP, and goes on", async () => {
    const errors: unknown[] = [];
    const options = { host: "127.0.0.1", port: 0, limitMs: LIMIT_MS };
    const health = await listenHealth({ ...options, onError: (error) => errors.push(error) });
    try {
      const { origin } = new URL(health.url);
      expect((await fetch(`${origin}/metrics`)).status).toBe(404);
      expect((await fetch(`${origin}/healthz/../api/ws`)).status).toBe(404);
      const posted = await fetch(health.url, { method: "POST", body: "{}" });
      expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
      const head = await fetch(health.url, { method: "HEAD" });
      expect([head.status, await head.text()]).toEqual([200, ""]);
      expect(await exchange(health.url, "not HTTP\r\n\r\n")).toMatch(/^HTTP\/1\.1 400 /);
      // A client that never finishes its request is cut off.
      expect(await exchange(health.url, "GET /healthz HTTP/1.1\r\n")).toMatch(/^HTTP\/1\.1 408 /);
      expect((await readHealth(`${health.url}?probe=1`)).status).toBe(200);
    } finally {
      await health.close();
    }
    await expect(fetch(health.url)).rejects.toThrow("fetch failed");
    expect(errors).toEqual([]);
  });

  it("answers beside a thousand sockets that say nothing", async () => {
    const options = { host: "127.0.0.1", port: 0, limitMs: LIMIT_MS };
    const health = await listenHealth({ ...options, onError: () => {} });
    const port = Number(new URL(health.url).port);
    const silent = Array.from({ length: 1001 }, () => connect(port, "127.0.0.1"));
    try {
      for (const socket of silent) socket.on("error", () => {});
      await Promise.all(silent.map((socket) => once(socket, "connect")));
      expect((await readHealth(health.url)).status).toBe(200);
    } finally {
      for (const socket of silent) socket.destroy();
      await health.close();
    }
  });
});
