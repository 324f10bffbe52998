import { ProtocolError } from "@gyre/protocol";
import { describe, expect, it } from "vitest";
import { ServeLog } from "./log.ts";

function logged(write: (log: ServeLog) => void, isQuiet = false): unknown[] {
  const lines: string[] = [];
  const clock = { now: () => 0 };
  write(new ServeLog({ write: (text: string) => lines.push(text) }, { isQuiet, clock }));
  return lines.map((line) => {
    expect(line.indexOf("\n")).toBe(line.length - 1);
    return JSON.parse(line) as unknown;
  });
}

const TIME = "1970-01-01T00:00:00.000Z";

describe("the log of a server", () => {
  it("has a line of JSON for each event, with its time", () => {
    expect(logged((log) => log.info({ event: "exit", code: 0 }))).toEqual([
      { time: TIME, level: "info", event: "exit", code: 0 },
    ]);
  });

  it("logs an error without its text, which may quote a user", () => {
    const error = new ProtocolError("internal_error", 'No "my secret plan" here.');
    expect(logged((log) => log.error(error, '"prompt"'))).toEqual([
      {
        time: TIME,
        level: "error",
        event: "error",
        where: '"prompt"',
        error: error.name,
        code: "internal_error",
      },
    ]);
  });

  it("has the words of the system", () => {
    const error = Object.assign(new Error("ENOSPC: no space left on device"), {
      code: "ENOSPC",
      syscall: "write",
    });
    const [line] = logged((log) => log.error(error, "listening"));
    expect(line).toMatchObject({ code: "ENOSPC", message: "ENOSPC: no space left on device" });
  });

  it("says why a session could not be saved", () => {
    const error = Object.assign(new Error("s.jsonl: no space left"), { code: "write_failed" });
    const [line] = logged((log) => log.error(error, "a run of session s"));
    expect(line).toMatchObject({ code: "write_failed", message: "s.jsonl: no space left" });
  });

  it("cuts a path that is too long", () => {
    const path = "/".repeat(10_000);
    const entry = { method: "GET", path, status: 404, durationMs: 1 };
    const [line] = logged((log) => log.info({ event: "http_error", ...entry }));
    expect(line).toMatchObject({ path: "/".repeat(200) });
  });

  it("has errors alone where it is to be quiet", () => {
    const lines = logged((log) => {
      log.info({ event: "exit", code: 0 });
      log.warning("Careful.");
      log.error("broken", "somewhere");
    }, true);
    expect(lines).toMatchObject([{ level: "error", error: "string", where: "somewhere" }]);
  });
});
