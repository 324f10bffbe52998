import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { platform } from "node:process";
import { toRecord } from "@gyre/ai";
import { LineDecoder } from "@gyre/ai/stream";
import type { Bus, Packet } from "../contract/bus.ts";
import { formatPacket, listTexts, parsePacket } from "./packets.ts";

/** Processes that follow are noticed by a hint; it may be lost. */
const LOOK_EVERY_MS = 10_000;
/** What waits for a process that does not read. Above it, nothing is sent: the gap shows. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
const FOLDER = "gyre-live-";

/** Where the processes of a machine find each other. */
export interface FollowerRegistry {
  add(follower: Follower): Promise<void>;
  remove(id: string): Promise<void>;
  list(): Promise<Follower[]>;
  /** Calls the listener when another process may have been added. */
  listen(listener: () => void): () => void;
}

/** A process that follows runs, and the address of its socket. */
export interface Follower {
  readonly id: string;
  readonly address: string;
}

/**
 * Live events between the processes of one machine. A process that follows has a socket; those
 * with a worker connect to it, are sent what it wants, and send it that.
 */
export class SocketBus implements Bus {
  readonly #id = randomUUID();
  readonly #registry: FollowerRegistry;
  readonly #onError: (error: unknown, where: string) => void;
  readonly #followed = new Map<string, Set<(packet: Packet) => void>>();
  #server: Promise<{ server: Server; address: string } | undefined> | undefined;
  /** Processes with a worker, of one that follows. */
  readonly #owners = new Set<Socket>();
  /** Processes that follow, of one with a worker: what each wants. */
  readonly #followers = new Map<string, { socket: Socket; sessions: Set<string> }>();
  #onWanted: ((session: string) => void) | undefined;
  #looking: Promise<void> | undefined;
  #isClosed = false;

  constructor(registry: FollowerRegistry, onError: (error: unknown, where: string) => void) {
    this.#registry = registry;
    this.#onError = onError;
  }

  follow(session: string, listener: (packet: Packet) => void): () => void {
    const listeners = this.#followed.get(session) ?? new Set();
    this.#followed.set(session, listeners);
    listeners.add(listener);
    this.#server ??= this.#listen();
    this.#writeToOwners({ follow: [session] });
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0 || this.#followed.get(session) !== listeners) return;
      this.#followed.delete(session);
      this.#writeToOwners({ leave: [session] });
    };
  }

  ask(session: string): void {
    this.#writeToOwners({ ask: [session] });
  }

  serve(onWanted: (session: string) => void): () => void {
    this.#onWanted = onWanted;
    const timer = setInterval(() => this.#look(), LOOK_EVERY_MS).unref();
    const unlisten = this.#registry.listen(() => this.#look());
    this.#look();
    return () => {
      this.#onWanted = undefined;
      clearInterval(timer);
      unlisten();
      for (const { socket } of this.#followers.values()) socket.destroy();
    };
  }

  isFollowed(session: string): boolean {
    for (const { sessions } of this.#followers.values()) if (sessions.has(session)) return true;
    return false;
  }

  async send(packets: readonly Packet[]): Promise<number> {
    const lines = packets.map((packet) => [packet.session, `${formatPacket(packet)}\n`] as const);
    for (const { socket, sessions } of this.#followers.values()) {
      const wanted = lines.flatMap(([session, line]) => (sessions.has(session) ? line : []));
      if (socket.writableLength < MAX_WAITING_BYTES) socket.write(wanted.join(""));
    }
    return 0;
  }

  /** The registry is open still. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { socket } of this.#followers.values()) socket.destroy();
    await this.#looking;
    const listening = await this.#server;
    if (!listening) return;
    for (const socket of this.#owners) socket.destroy();
    listening.server.close();
    await this.#registry.remove(this.#id).catch(() => {});
    await removeSocket(listening.address);
  }

  /** Opens the socket that processes with a worker connect to. */
  async #listen(): Promise<{ server: Server; address: string } | undefined> {
    try {
      const address = await createAddress();
      const server = createServer((socket) => this.#acceptOwner(socket));
      await new Promise<void>((resolve, reject) => {
        server.once("error", reject);
        server.listen(address, resolve);
      });
      server.unref();
      await this.#registry.add({ id: this.#id, address });
      return { server, address };
    } catch (error) {
      this.#onError(error, "live events");
      return undefined;
    }
  }

  #acceptOwner(socket: Socket): void {
    this.#owners.add(socket);
    socket.on("close", () => this.#owners.delete(socket));
    readLines(socket, (line) => {
      const packet = parsePacket(JSON.parse(line));
      const listeners = packet && this.#followed.get(packet.session);
      if (packet && listeners) for (const listener of [...listeners]) listener(packet);
    });
    write(socket, { follow: [...this.#followed.keys()] });
  }

  #writeToOwners(message: object): void {
    for (const socket of this.#owners) write(socket, message);
  }

  #look(): void {
    if (this.#isClosed) return;
    this.#looking ??= this.#connectAll()
      .catch((error: unknown) => this.#onError(error, "live events"))
      .finally(() => (this.#looking = undefined));
  }

  async #connectAll(): Promise<void> {
    for (const follower of await this.#registry.list()) {
      if (follower.id === this.#id || this.#followers.has(follower.id)) continue;
      if (this.#onWanted) this.#connect(follower);
    }
  }

  #connect({ id, address }: Follower): void {
    const socket = connect(address);
    const sessions = new Set<string>();
    this.#followers.set(id, { socket, sessions });
    socket.on("close", () => this.#followers.delete(id));
    socket.on("error", (error) => {
      // A process that was killed has left its address behind.
      const isGone = "code" in error && (error.code === "ECONNREFUSED" || error.code === "ENOENT");
      if (isGone) void this.#forget(id, address);
    });
    readLines(socket, (line) => {
      const { follow, leave, ask } = toRecord(JSON.parse(line));
      for (const session of listTexts(follow)) sessions.add(session);
      for (const session of listTexts(leave)) sessions.delete(session);
      for (const session of [...listTexts(follow), ...listTexts(ask)]) this.#onWanted?.(session);
    });
  }

  async #forget(id: string, address: string): Promise<void> {
    try {
      await this.#registry.remove(id);
      await removeSocket(address);
    } catch (error) {
      this.#onError(error, "live events");
    }
  }
}

/** In a folder of this user alone. */
async function createAddress(): Promise<string> {
  if (platform === "win32") return String.raw`\\.\pipe\${FOLDER}${randomUUID()}`;
  return join(await mkdtemp(join(tmpdir(), FOLDER)), "socket");
}

async function removeSocket(address: string): Promise<void> {
  const folder = dirname(address);
  if (platform === "win32" || !folder.startsWith(join(tmpdir(), FOLDER))) return;
  await rm(folder, { recursive: true, force: true });
}

function readLines(socket: Socket, onLine: (line: string) => void): void {
  const decoder = new LineDecoder(onLine);
  // It keeps no program alive; one that breaks is closed, and connected again later.
  socket.unref();
  socket.on("error", () => socket.destroy());
  socket.on("data", (chunk) => {
    try {
      decoder.feed(chunk);
    } catch (error) {
      socket.destroy(error instanceof Error ? error : undefined);
    }
  });
}

function write(socket: Socket, message: object): void {
  socket.write(`${JSON.stringify(message)}\n`);
}
