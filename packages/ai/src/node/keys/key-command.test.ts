import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { manualClock } from "../../testing/manual-clock.ts";
import { type Command, createKeyCommands, type KeyCommands } from "./key-command.ts";

const TIMEOUT_MS = 10_000;
const TTL_MS = 300_000;

let folder = "";
let clock = manualClock();
let commands: KeyCommands;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "keys-"));
  clock = manualClock();
  commands = createKeyCommands({ clock, timeoutMs: TIMEOUT_MS, ttlMs: TTL_MS });
});
afterEach(() => rm(folder, { recursive: true }));

const script = (source: string, ...args: string[]): Command => [
  process.execPath,
  "-e",
  source,
  ...args,
];

/** A command that writes a key, and keeps count of its runs in a file. */
function counted(): { command: Command; runs: () => Promise<number> } {
  const path = join(folder, "runs");
  const source = `fs.appendFileSync(process.argv[1], "."); console.log("key-" + fs.statSync(process.argv[1]).size)`;
  return { command: script(source, path), runs: async () => (await readFile(path)).length };
}

/** What a command fails with. */
async function failure(command: Command): Promise<string> {
  const error: unknown = await commands.get(command).catch((error: unknown) => error);
  expect(error).toMatchObject({ name: "KeyCommandError", code: "key_command" });
  expect(clock.pending).toBe(0);
  return String(error).replace(process.execPath, "node");
}

/** The reason of a promise that is to reject, whatever it is. */
const catchReason = (promise: Promise<string>): Promise<unknown> =>
  promise.catch((reason: unknown) => reason);

describe("the answer", () => {
  it("is the first line, without the space around it", async () => {
    expect(await commands.get(script(String.raw`console.log("  sk-1 \r\nmore\n")`))).toBe("sk-1");
    expect(await commands.get(script(`process.stdout.write("sk-2")`))).toBe("sk-2");
    expect(clock.pending).toBe(0);
  });

  it("comes without a shell, and with nothing on stdin", async () => {
    const source = `process.stdin.on("data", () => {}).on("end", () => console.log(process.argv[1]))`;
    expect(await commands.get(script(source, "$HOME;`ls`|*"))).toBe("$HOME;`ls`|*");
  });

  it("is shared by those who ask while it runs, and kept for a while", async () => {
    const { command, runs } = counted();
    const both = await Promise.all([commands.get(command), commands.get([...command])]);
    expect(both).toEqual(["key-1", "key-1"]);
    await clock.advance(TTL_MS - 1);
    expect(await commands.get(command)).toBe("key-1");
    expect(await runs()).toBe(1);
    await clock.advance(1);
    expect(await commands.get(command)).toBe("key-2");
    commands.clear();
    expect(await commands.get(command)).toBe("key-3");
  });

  it("of another command is another", async () => {
    const source = "console.log(process.argv[1])";
    expect(await commands.get(script(source, "one"))).toBe("one");
    expect(await commands.get(script(source, "two"))).toBe("two");
  });

  it("that failed is not kept", async () => {
    const path = join(folder, "there");
    const source = `if (fs.existsSync(process.argv[1])) console.log("sk-1");
      else { fs.writeFileSync(process.argv[1], ""); process.exit(1); }`;
    expect(await failure(script(source, path))).toContain("failed with code 1");
    expect(await commands.get(script(source, path))).toBe("sk-1");
  });
});

describe("errors", () => {
  it("a program that is not there", async () => {
    expect(await failure(["no-such-program-here"])).toBe(
      "KeyCommandError: The command no-such-program-here was not found.",
    );
  });

  it("a program that cannot be started, without the arguments", async () => {
    const text = await failure([process.execPath, "secret\u0000argument"]);
    expect(text).toBe(
      "KeyCommandError: The command node cannot be started (ERR_INVALID_ARG_VALUE).",
    );
  });

  it("a program that fails: its code and what it says, in one line", async () => {
    const text = await failure(
      script(
        String.raw`console.error("\u001b[31mNot signed in.\nRun op signin."); process.exit(3)`,
      ),
    );
    expect(text).toBe(
      "KeyCommandError: The command node failed with code 3: [31mNot signed in. Run op signin.",
    );
  });

  it("what it says is shown without keys, and cut", async () => {
    const source = `console.log("plain-word-key"); console.error(process.argv[1]); process.exit(1)`;
    const output = `got plain-word-key, sk-abcdefghijkl and ${"x".repeat(1_000)}`;
    const text = await failure(script(source, output));
    expect(text).toContain("got [redacted], [redacted] and xxx");
    expect(text).not.toMatch(/plain-word|abcdef|-e/);
    expect(text.length).toBeLessThan(600);
  });

  it.each([
    ["", "gave no key: the first line that it wrote is empty"],
    [String.raw`\nsk-abc`, "gave no key: the first line that it wrote is empty"],
    ["sk abc", "gave a key that contains a space at character 3 of 6"],
    [String.raw`\u201Csk-abc`, "gave a key that contains a character that is not ASCII"],
  ])("a key of no use: %j", async (written, problem) => {
    const text = await failure(script(`process.stdout.write("${written}")`));
    expect(text).toContain(problem);
    expect(text).not.toContain("abc");
  });

  it("a program that writes without end", async () => {
    const source = `const more = () => process.stdout.write("x".repeat(9999), more); more()`;
    expect(await failure(script(source))).toContain("wrote more than 65536 bytes");
  });

  it.runIf(process.platform !== "win32")("a program that is ended", async () => {
    expect(await failure(script(`process.kill(process.pid, "SIGTERM")`))).toContain(
      "was ended by SIGTERM",
    );
  });
});

describe("a program that does not end", () => {
  let server: Server;
  let address = "";
  beforeEach(async () => {
    const pipe = join(folder, "alive");
    address = process.platform === "win32" ? String.raw`\\.\pipe\${pipe}` : pipe;
    server = createServer().listen(address);
    await once(server, "listening");
  });
  afterEach(() => {
    server.close();
  });

  /** It holds a connection for as long as it lives. */
  const endless = (): Command =>
    script(`console.error("Waiting for you."); require("net").connect(process.argv[1])`, address);

  async function connection(): Promise<Socket> {
    const [socket] = (await once(server, "connection")) as [Socket];
    return socket.on("error", () => {}).resume();
  }

  it("is ended when its time is over", async () => {
    const answer = commands.get(endless());
    const failed = catchReason(answer);
    const socket = await connection();
    await clock.advance(TIMEOUT_MS - 1);
    expect(socket.closed).toBe(false);
    await clock.advance(1);
    expect(String(await failed)).toContain("gave no key within 10000 ms: Waiting for you.");
    await (socket.closed || once(socket, "close"));
    expect(clock.pending).toBe(0);
  });

  it("is ended when all who wait for it have left, and runs again for the next", async () => {
    const [one, two] = [new AbortController(), new AbortController()];
    const command = endless();
    const first = commands.get(command, one.signal);
    const second = commands.get(command, two.signal);
    const socket = await connection();
    const left = catchReason(first);
    one.abort("first");
    expect(await left).toBe("first");
    expect(socket.closed).toBe(false);

    const gone = catchReason(second);
    two.abort("second");
    expect(await gone).toBe("second");
    const three = new AbortController();
    const third = commands.get(command, three.signal);
    const next = await connection();
    await (socket.closed || once(socket, "close"));
    const over = catchReason(third);
    three.abort("third");
    expect(await over).toBe("third");
    await (next.closed || once(next, "close"));
    expect(clock.pending).toBe(0);
  });

  it("is not even started for a signal that has fired", async () => {
    await expect(commands.get(endless(), AbortSignal.abort("before"))).rejects.toBe("before");
    expect(clock.pending).toBe(0);
  });
});
