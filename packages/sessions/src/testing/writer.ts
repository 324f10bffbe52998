import { createInterface } from "node:readline";
import { createSession, openSession } from "../file/session-file.ts";
import { type Session, SessionError } from "../format/types.ts";

/**
 * A program that runs commands of stdin on a session file, line by line, and
 * answers each with a line: `ok`, or the code of the error.
 */
const [, , path = ""] = process.argv;
let session: Session | undefined;

async function append(bytes: number): Promise<void> {
  const message = { role: "user", content: "x".repeat(bytes), timestamp: 1 } as const;
  await session?.append({ type: "message", message });
}

/** The bytes depend on the size: a test knows them without being given any. */
async function appendFile(size: number): Promise<void> {
  const data = Buffer.alloc(size, size % 251).toString("base64");
  const file = {
    type: "file",
    mediaType: "application/pdf",
    source: { type: "base64", data },
  } as const;
  const message = { role: "user", content: [file], timestamp: 1 } as const;
  await session?.append({ type: "message", message: { ...message, content: [file] } });
}

async function act(order: string): Promise<void> {
  const [name, size] = order.split(" ");
  if (name === "create") session = await createSession(path, { cwd: "/w" });
  else if (name === "open") session = await openSession(path);
  else if (name === "append") await append(Number(size));
  else if (name === "title") await session?.append({ type: "title", title: size ?? "" });
  else if (name === "file") await appendFile(Number(size));
  else if (name === "close") {
    await session?.close();
    session = undefined;
  } else if (name === "die") process.kill(process.pid, "SIGKILL");
  else throw new Error(`Unknown order "${order}"`);
}

for await (const order of createInterface({ input: process.stdin })) {
  try {
    await act(order);
    console.log("ok");
  } catch (error) {
    console.log(error instanceof SessionError ? error.code : String(error));
  }
}
