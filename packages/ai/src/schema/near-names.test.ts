import { describe, expect, it } from "vitest";
import { nearNames } from "./near-names.ts";

describe("nearNames", () => {
  it("looks past case and separators", () => {
    expect(nearNames("ReadFile", ["write_file", "read_file"])).toEqual(["read_file"]);
    expect(nearNames("READ-FILE", ["read_file", "bash"])).toEqual(["read_file"]);
  });

  it("finds slips of the keys, the nearest first", () => {
    expect(nearNames("grpe", ["bash", "grep"])).toEqual(["grep"]);
    expect(nearNames("oldtxt", ["newText", "oldText"])).toEqual(["oldText"]);
    expect(nearNames("serch", ["fetch", "search"])).toEqual(["search"]);
  });

  it("finds a name inside another", () => {
    expect(nearNames("file_path", ["path", "limit"])).toEqual(["path"]);
    expect(nearNames("read", ["bash", "read_many_files"])).toEqual(["read_many_files"]);
  });

  it("gives at most three, each once, and never the name itself", () => {
    const names = ["tool1", "tool2", "tool3", "tool4", "tool2"];
    expect(nearNames("tool1", names)).toEqual(["tool2", "tool3", "tool4"]);
  });

  it("gives none where nothing is near", () => {
    expect(nearNames("bash", ["read", "edit", "grep"])).toEqual([]);
    expect(nearNames("x", ["y", "xylophone"])).toEqual([]);
    expect(nearNames("", ["a", "read"])).toEqual([]);
    expect(nearNames("read", [])).toEqual([]);
  });

  it("does not stall on very long names", () => {
    const long = "a".repeat(100_000);
    expect(nearNames(long, [`${long}b`, "read"])).toEqual([`${long}b`]);
  });
});
