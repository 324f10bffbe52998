import { describe, expect, it } from "vitest";
import { buildFilter, openFilter } from "./system-calls.ts";
import { readFileSync } from "node:fs";

const ALLOW = 0x7fff_0000;
const EPERM = 0x0005_0001;

/** What the kernel's machine gives for a call: the few instructions that a filter uses. */
function runFilter(filter: Buffer, architecture: number, number: number): number {
  let word = 0;
  for (let at = 0; at < filter.length; at += 8) {
    const value = filter.readUInt32LE(at + 4);
    const jump = (holds: boolean): void => {
      at += 8 * filter.readUInt8(at + (holds ? 2 : 3));
    };
    switch (filter.readUInt16LE(at)) {
      case 0x20:
        word = value === 4 ? architecture : number;
        break;
      case 0x15:
        jump(word === value);
        break;
      case 0x35:
        jump(word >= value);
        break;
      case 0x06:
        return value;
      default:
        throw new Error(`No instruction of a filter: ${filter.readUInt16LE(at)}`);
    }
  }
  throw new Error("The filter has no end.");
}

const X64 = 0xc000_003e;
const IA32 = 0x4000_0003;
const ARM64 = 0xc000_00b7;
const ARM = 0x4000_0028;

describe("the filter of system calls", () => {
  it.each([
    ["x64", X64, [248, 249, 250, 321, 246, 320, 175, 313, 176]],
    ["x64", IA32, [286, 287, 288, 357, 283, 128, 350, 129]],
    ["arm64", ARM64, [217, 218, 219, 280, 104, 294, 105, 273, 106]],
    ["arm64", ARM, [309, 310, 311, 386, 347, 401, 128, 379, 129]],
  ] as const)("of %s denies exactly its calls (%i)", (processor, architecture, denied) => {
    const filter = buildFilter(processor);
    if (!filter) throw new Error("There is no filter.");
    const found = Array.from({ length: 600 }, (_, number) => number).filter(
      (number) => runFilter(filter, architecture, number) !== ALLOW,
    );
    expect(found).toEqual([...denied].sort((a, b) => a - b));
    expect(runFilter(filter, architecture, denied[0])).toBe(EPERM);
  });

  it("denies the same calls under other numbers, and programs of other kinds", () => {
    const filter = buildFilter("x64");
    if (!filter) throw new Error("There is no filter.");
    expect(runFilter(filter, X64, 0x4000_0000 + 250)).toBe(EPERM);
    expect(runFilter(filter, ARM64, 1)).toBe(EPERM);
  });

  it("is not there for a processor whose numbers are not known", () => {
    expect(buildFilter("riscv64")).toBeUndefined();
  });

  it.runIf(process.platform === "linux" && buildFilter())("is a file without a name", () => {
    const path = openFilter() ?? "";
    expect(path).toBe(openFilter());
    expect(readFileSync(path)).toEqual(buildFilter());
    expect(readFileSync(path)).toEqual(buildFilter());
  });
});
