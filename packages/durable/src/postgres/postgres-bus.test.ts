import { describe, expect, it } from "vitest";
import type { Packet } from "../contract/bus.ts";
import { LiveFeed } from "../live/feed.ts";
import type { Database } from "./driver/database.ts";
import type { Notifier } from "./notifier.ts";
import { PostgresBus } from "./postgres-bus.ts";

/** A server whose queue of notifications is as full as it is set, and what was sent to it. */
function fakeServer(): { usage: number; payloads: string[]; bus: PostgresBus } {
  const server = { usage: 0, payloads: [] as string[] };
  const database = {
    all: async (_sql: string, _channel: string, payloads: string[]) => {
      server.payloads.push(...payloads);
      return payloads.map(() => ({ usage: server.usage }));
    },
    first: async () => ({ usage: server.usage }),
  };
  const notifier = { liveChannel: "live" };
  const bus = new PostgresBus(database as unknown as Database, notifier as unknown as Notifier);
  return Object.assign(server, { bus });
}

const HEAD = { role: "assistant", api: "x", provider: "x", model: "x" };

function packet(last: number, delta: string, more: Partial<Packet> = {}): Packet {
  const event = { type: "text_delta" as const, contentIndex: 0, delta };
  const events: Packet["events"] = [{ type: "message_update", event }];
  return { session: "s", token: 1, last, base: 1, events, ...more };
}

describe("live events where the queue of notifications is nearly full", () => {
  it("are dropped until there is room, so that hints have some", async () => {
    const server = fakeServer();
    expect(await server.bus.send([packet(1, "a")])).toBe(5);
    server.usage = 0.3;
    // That it is full shows with the next answer.
    await server.bus.send([packet(2, "b")]);
    expect(await server.bus.send([packet(3, "c")])).toBe(1_000);
    expect(await server.bus.send([packet(4, "d"), packet(5, "e")])).toBe(1_000);
    server.usage = 0.1;
    // There is room again: what follows is sent at once.
    expect(await server.bus.send([packet(6, "f")])).toBe(0);
    await server.bus.send([packet(7, "g")]);
    const sent = server.payloads.map((text) => JSON.parse(text).packets.length);
    expect(sent).toEqual([1, 1, 1]);
    expect(server.bus.stats).toEqual({ sent: 3, dropped: 4 });
  });

  it("are asked for again as a whole by a process that follows, and no delta is shown behind a gap", () => {
    const shown: string[] = [];
    let asked = 0;
    const feed: LiveFeed = new LiveFeed({
      onEvent: (event) => {
        if (event.type !== "message_update") return;
        const { assistantMessageEvent: update } = event;
        if ("delta" in update) shown.push(update.delta);
      },
      onWhole: () => shown.push(`whole: ${JSON.stringify(feed.state.message?.list().at(-1))}`),
      ask: () => asked++,
    });
    const start = { type: "message_start", message: HEAD } as unknown as Packet["events"][number];
    const block: Packet["events"][number] = {
      type: "message_update",
      event: { type: "text_start", contentIndex: 0 },
    };
    feed.receive(packet(3, "a", { events: [start, block, ...packet(3, "a").events] }));
    feed.receive(packet(7, "g"));
    expect(shown).toEqual(["a"]);
    expect(asked).toBe(1);
    feed.receive(packet(8, "h"));
    const whole = [start, block, ...packet(9, "abcdefgh").events];
    feed.receive(packet(9, "", { events: whole, isWhole: true }));
    feed.receive(packet(10, "i"));
    const all = { type: "text_delta", contentIndex: 0, delta: "abcdefgh" };
    expect(shown).toEqual(["a", `whole: ${JSON.stringify(all)}`, "i"]);
  });
});
