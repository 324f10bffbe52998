import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ApprovalAnswer, ApprovalRequest } from "@gyre/tools";
import { afterEach, beforeEach, expect, it } from "vitest";
import { HostGate } from "./hosts.ts";
import { RuleBook } from "./rule-book.ts";

let folder = "";
let file = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "gyre-rules-"));
  file = join(folder, "config/permissions.json");
});
afterEach(() => rmSync(folder, { recursive: true }));

it("keeps rules for a project and everywhere in a file that people can read", async () => {
  const book = new RuleBook("/shop", file);
  await book.add("shell(npm test)", "project");
  await book.add("shell(ls *)", "everywhere");
  await book.add("write", "session");
  expect(readFileSync(file, "utf8")).toBe(
    '{\n  "everywhere": [\n    "shell(ls *)"\n  ],\n  "projects": {\n    "/shop": [\n      "shell(npm test)"\n    ]\n  }\n}\n',
  );
  expect(new RuleBook("/shop", file).all).toEqual([
    { rule: "shell(ls *)", scope: "everywhere" },
    { rule: "shell(npm test)", scope: "project" },
  ]);
  expect(new RuleBook("/other", file).all).toEqual([{ rule: "shell(ls *)", scope: "everywhere" }]);
});

it("takes a rule back, from the file as well, and leaves what others wrote meanwhile", async () => {
  const book = new RuleBook("/shop", file);
  await book.add("shell(npm test)", "project");
  await new RuleBook("/other", file).add("shell(make)", "project");
  expect(await book.remove("shell(npm test)")).toBe(true);
  expect(await book.remove("shell(npm test)")).toBe(false);
  expect(book.isRevoked("shell(npm test)")).toBe(true);
  expect(new RuleBook("/shop", file).all).toEqual([]);
  expect(new RuleBook("/other", file).all).toEqual([{ rule: "shell(make)", scope: "project" }]);
});

it("says what is wrong with a file that cannot be read", () => {
  const broken = join(folder, "broken.json");
  writeFileSync(broken, '{"everywhere": "shell"}');
  expect(() => new RuleBook("/shop", broken)).toThrow(
    /broken.json cannot be read as a list of rules/,
  );
});

it("a person is asked once about a host, and not about one that a rule names", async () => {
  const asked: string[] = [];
  const book = new RuleBook("/shop", file);
  const answer = (request: ApprovalRequest): Promise<ApprovalAnswer> => {
    asked.push(request.reason);
    const { fingerprint } = request;
    if (request.args["host"] === "a.org") return Promise.resolve({ allow: true, fingerprint });
    if (request.args["host"] === "b.org:8080") {
      return Promise.resolve({ allow: "always", rule: "network(b.org:8080)", scope: "everywhere" });
    }
    return Promise.resolve({ allow: false });
  };
  const gate = new HostGate(answer, book);
  expect(await Promise.all([gate.decide("a.org", 443), gate.decide("a.org", 80)])).toEqual([
    true,
    true,
  ]);
  expect(await gate.decide("b.org", 8080)).toBe(true);
  expect(await gate.decide("c.org", 443)).toBe(false);
  expect(await gate.decide("c.org", 443)).toBe(false);
  expect(asked).toHaveLength(3);
  const later = new HostGate(answer, new RuleBook("/other", file));
  expect(await later.decide("b.org", 8080)).toBe(true);
  expect(asked).toHaveLength(3);
  expect(await new HostGate(undefined, book).decide("d.org", 443)).toBe(false);
});
