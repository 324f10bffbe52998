import { connect, createServer } from "node:net";

/**
 * Stands between a browser and a server, and can cut what is connected.
 *
 * @param {URL} address of the server
 * @returns {Promise<{ address: string, cut: () => number, close: () => void }>} `cut` says how many there were
 */
export async function listenBetween(address) {
  /** @type {Set<import("node:net").Socket>} */
  const sockets = new Set();
  const server = createServer((socket) => {
    const other = connect(Number(address.port), address.hostname);
    sockets.add(socket);
    socket.on("close", () => {
      sockets.delete(socket);
      other.destroy();
    });
    other.on("close", () => socket.destroy());
    // Each that fails is closed, and so is its other end.
    socket.on("error", () => other.destroy()).pipe(other);
    other.on("error", () => socket.destroy()).pipe(socket);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const place = server.address();
  if (place === null || typeof place === "string") throw new Error("the server has no port");
  const cut = () => {
    const count = sockets.size;
    for (const socket of sockets) socket.destroy();
    return count;
  };
  return {
    address: `http://127.0.0.1:${place.port}/`,
    cut,
    close: () => {
      server.close();
      cut();
    },
  };
}
