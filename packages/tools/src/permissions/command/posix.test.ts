import { describe, expect, it } from "vitest";
import { commandParts } from "./parts.ts";
import { describePosixDoubt } from "./posix.ts";

describe("a line for a shell that is not bash", () => {
  it.each([
    "git log --oneline -n 5 | head -3 && npm test > out.txt 2>&1",
    'for x in a b; do echo "$x ${x}"; done',
    "if [ -f a ]; then { cat a; }; fi",
    "echo $((1 + 2)) $(ls) 'a b' \"c\"",
    "(cd src && ls) >&2 &",
  ])("is plain: %j", (line) => {
    expect(describePosixDoubt(line)).toBeUndefined();
    expect(commandParts(line, { isPosix: true })).toEqual(commandParts(line));
  });

  // Each is clear to bash, and runs or writes something else by dash.
  it.each([
    "git $'status'",
    "git status &>out",
    "git status <<<x",
    "git {log,show}",
    "[[ -f a ]]",
    "ls 10>out",
    "time git status",
    "ls {fd}>out",
    "cat <<E\nx\nE",
  ])("is unclear: %j", (line) => {
    expect(commandParts(line).unclear).toBeUndefined();
    expect(commandParts(line, { isPosix: true }).unclear).toMatch(/"sh"/);
  });
});
