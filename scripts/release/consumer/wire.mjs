// What the packages offer to pages, used against a real server: models over a WebSocket, over
// requests and events, and by the proxy; sessions over both.
import { createRemoteClient, WireClient } from "@gyre/protocol";
import { openHttp } from "@gyre/protocol/transports/http";
import { streamProxy } from "@gyre/protocol/proxy";
import { openWebSocket } from "@gyre/protocol/transports/websocket";
import { RemoteAgent } from "@gyre/server/client";

/**
 * @typedef {{ url: string, token: string, model: import("@gyre/ai").Model, text: string }} Server
 */

/**
 * Asks the server's model in every way there is. Gives what was done; throws where a text is
 * not the one that was sent, or did not stream.
 *
 * @param {Server} server
 * @returns {Promise<string[]>}
 */
export async function tourOfTheWire({ url, token, model, text }) {
  /** @type {[string, import("@gyre/protocol").Connect][]} */
  const ways = [
    ["websocket", (signal) => openWebSocket(`${url}/api/ws`, { token, signal })],
    ["http", (signal) => openHttp(url, { token, signal })],
  ];
  const context = {
    messages: [{ role: /** @type {const} */ ("user"), content: "Go", timestamp: 0 }],
  };
  /** @type {string[]} */
  const stops = [];
  for (const [name, connect] of ways) {
    const peer = new WireClient({ connect });
    const stream = createRemoteClient({ peer }).stream(model, context);
    assertStreamed(await collectDeltas(stream), text, name);
    assertStreamed(await deltasOfSession(peer), text, `${name} session`);
    stops.push(name, `${name} session`);
    await peer.close();
  }
  assertStreamed(await collectDeltas(streamProxy(model, context, { url, token })), text, "proxy");
  return [...stops, "proxy"];
}

/** @param {import("@gyre/ai").AssistantMessageEventStream} stream */
async function collectDeltas(stream) {
  /** @type {string[]} */
  const deltas = [];
  for await (const event of stream) {
    if (event.type === "text_delta") deltas.push(event.delta);
    if (event.type === "error") throw new Error(event.error.errorMessage);
  }
  return deltas;
}

/** @param {WireClient} peer */
async function deltasOfSession(peer) {
  const agent = await RemoteAgent.create(peer);
  /** @type {string[]} */
  const deltas = [];
  agent.subscribe((event) => {
    if (event.type !== "message_update") return;
    const { assistantMessageEvent } = event;
    if (assistantMessageEvent.type === "text_delta") deltas.push(assistantMessageEvent.delta);
  });
  await agent.prompt("Go");
  await agent.closeSession();
  return deltas;
}

/**
 * @param {readonly string[]} deltas
 * @param {string} text
 * @param {string} way
 */
function assertStreamed(deltas, text, way) {
  if (deltas.join("") !== text) throw new Error(`${way}: got ${JSON.stringify(deltas)}`);
  if (deltas.length < 2) throw new Error(`${way}: it came in one piece`);
}

Object.assign(globalThis, { tourOfTheWire });
