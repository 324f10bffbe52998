import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type PostgresServer, startPostgres } from "../../../../tests/support/postgres.ts";
import { openStore } from "../runs/open.ts";
import { DatabaseProxy } from "../testing/proxy.ts";

describe("hints between processes", { tags: "postgres" }, () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.remove());

  it("arrive again after the connection that listens has lost its network without a word", async () => {
    const proxy = await DatabaseProxy.start(server.port);
    const url = server.url();
    // Only what listens goes through the proxy, as with a pooler.
    const store = await openStore(url, { listenUrl: proxy.wrap(url), onError: () => {} });
    const other = await openStore(url);
    const hints: (string | undefined)[] = [];
    store.listen("work", ({ session }) => hints.push(session));
    const send = async (session: string): Promise<void> => {
      await other.start({
        ...{ id: `r-${session}`, session, agent: "a", tenant: "", priority: 0, digest: "" },
        prompt: ['{"message":{"role":"user","content":"Go."}}'],
      });
    };
    await vi.waitFor(() => expect(hints).toContain(undefined), { timeout: 20_000 });
    proxy.strand();
    await send("lost");
    hints.splice(0);
    let nth = 0;
    await vi.waitFor(
      async () => {
        await send(`next-${++nth}`);
        expect(hints.some((hint) => hint?.startsWith("next-"))).toBe(true);
      },
      { timeout: 60_000, interval: 200 },
    );
    await store.close();
    await other.close();
    await proxy.close();
  });

  it("a store closes also where its network is gone", async () => {
    const proxy = await DatabaseProxy.start(server.port);
    const store = await openStore(proxy.wrap(server.url()), { onError: () => {} });
    let isListening = false;
    store.listen("work", () => (isListening = true));
    await vi.waitFor(() => expect(isListening).toBe(true), { timeout: 20_000 });
    await store.readRun("none");
    proxy.strand();
    await store.close();
    await expect(store.readRun("none")).rejects.toMatchObject({ code: "closed" });
    await proxy.close();
  });
});
