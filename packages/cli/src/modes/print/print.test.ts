import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { textIo } from "../../testing/command-io.ts";
import { type ScriptedService, scriptedService } from "../../testing/scripted-service.ts";
import { runPrint } from "./print.ts";

let home: string;
let service: ScriptedService;
/** Copies to the clipboard, clears the screen, hides a link and turns text around. */
const ANSWER =
  "a\u001B]52;c;cm0gLXJm\u0007b\u001B[2Jc\u001B]8;;http://evil\u001B\\d\u009B31me\u202Ef\tg\nh";

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "gyre-print-"));
  mkdirSync(join(home, "work"));
  service = await scriptedService([{ say: ANSWER }]);
});
afterEach(async () => {
  await service.close();
  rmSync(home, { recursive: true, force: true });
});

async function print(isTTY: boolean): Promise<string> {
  let out = "";
  const io = textIo({
    cwd: join(home, "work"),
    stdout: { write: (text: string) => (out += text), isTTY },
    env: {
      HOME: home,
      PATH: process.env["PATH"],
      XDG_CONFIG_HOME: join(home, "config"),
      XDG_STATE_HOME: join(home, "state"),
      ANTHROPIC_API_KEY: "test-key",
      ANTHROPIC_BASE_URL: service.url,
    },
  });
  await runPrint(["Hi"], { "no-session": true, quiet: true }, io);
  return out;
}

describe("the answer on stdout", () => {
  it("has nothing that a terminal obeys where stdout is one", async () => {
    expect(await print(true)).toBe("a␛bc␛def\tg\nh\n");
  });

  it("is as the model wrote it where a program reads it", async () => {
    expect(await print(false)).toBe(`${ANSWER}\n`);
  });
});
