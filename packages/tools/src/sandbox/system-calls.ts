import { mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * What no program in the sandbox may ask of the kernel. The keys of the user's session are
 * inherited with all else that a process is, and no namespace separates them. The others change
 * the kernel itself: they need capabilities that a program in the sandbox does not have, unless
 * the kernel has a hole.
 */
type DeniedCall =
  | "add_key"
  | "request_key"
  | "keyctl"
  | "bpf"
  | "kexec_load"
  | "kexec_file_load"
  | "init_module"
  | "finit_module"
  | "delete_module";

/** How programs of one kind call the kernel: its number for the kind, and those of the calls. */
interface CallingConvention {
  architecture: number;
  numbers: Readonly<Partial<Record<DeniedCall, number>>>;
  /** Calls from here on are the same under other numbers. */
  otherNumbersFrom?: number;
}

/** For each processor, all the kinds of programs that it runs. */
const CONVENTIONS: Readonly<Record<string, readonly CallingConvention[]>> = {
  x64: [
    {
      architecture: 0xc000_003e,
      numbers: {
        add_key: 248,
        request_key: 249,
        keyctl: 250,
        bpf: 321,
        kexec_load: 246,
        kexec_file_load: 320,
        init_module: 175,
        finit_module: 313,
        delete_module: 176,
      },
      otherNumbersFrom: 0x4000_0000,
    },
    {
      architecture: 0x4000_0003,
      numbers: {
        add_key: 286,
        request_key: 287,
        keyctl: 288,
        bpf: 357,
        kexec_load: 283,
        init_module: 128,
        finit_module: 350,
        delete_module: 129,
      },
    },
  ],
  arm64: [
    {
      architecture: 0xc000_00b7,
      numbers: {
        add_key: 217,
        request_key: 218,
        keyctl: 219,
        bpf: 280,
        kexec_load: 104,
        kexec_file_load: 294,
        init_module: 105,
        finit_module: 273,
        delete_module: 106,
      },
    },
    {
      architecture: 0x4000_0028,
      numbers: {
        add_key: 309,
        request_key: 310,
        keyctl: 311,
        bpf: 386,
        kexec_load: 347,
        kexec_file_load: 401,
        init_module: 128,
        finit_module: 379,
        delete_module: 129,
      },
    },
  ],
};

/** Of the kernel's machine for filters: load a word, compare and jump, return. */
const LOAD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_AT_LEAST = 0x35;
const RETURN = 0x06;
/** Where in what a filter looks at. */
const NUMBER_AT = 0;
const ARCHITECTURE_AT = 4;
const ALLOW = 0x7fff_0000;
const FAIL_WITH = 0x0005_0000;
const EPERM = 1;
const INSTRUCTION_BYTES = 8;

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

/** The filter for a processor as bwrap reads it; nothing for one whose numbers are not known here. */
export function buildFilter(processor: string = process.arch): Buffer | undefined {
  const conventions = CONVENTIONS[processor];
  if (!conventions) return undefined;
  const program: Instruction[] = [[LOAD, 0, 0, ARCHITECTURE_AT]];
  for (const { architecture, numbers, otherNumbersFrom } of conventions) {
    const tests: (readonly [code: number, value: number])[] = [
      ...(otherNumbersFrom === undefined ? [] : [[JUMP_IF_AT_LEAST, otherNumbersFrom] as const]),
      ...Object.values(numbers).map((number) => [JUMP_IF_EQUAL, number] as const),
    ];
    const block: Instruction[] = [
      [LOAD, 0, 0, NUMBER_AT],
      // To the last of the block.
      ...tests.map(([code, value], n): Instruction => [code, tests.length - n, 0, value]),
      [RETURN, 0, 0, ALLOW],
      [RETURN, 0, 0, FAIL_WITH | EPERM],
    ];
    program.push([JUMP_IF_EQUAL, 0, block.length, architecture], ...block);
  }
  program.push([RETURN, 0, 0, FAIL_WITH | EPERM]);
  const bytes = Buffer.alloc(program.length * INSTRUCTION_BYTES);
  program.forEach(([code, ifTrue, ifFalse, value], n) => {
    const at = n * INSTRUCTION_BYTES;
    bytes.writeUInt16LE(code, at);
    bytes.writeUInt8(ifTrue, at + 2);
    bytes.writeUInt8(ifFalse, at + 3);
    bytes.writeUInt32LE(value, at + 4);
  });
  return bytes;
}

let opened: string | undefined;

/**
 * A path by which what we start can read the filter, as long as we run: that of a file without a
 * name, which no program can replace. Throws where no folder for temporary files can be written.
 */
export function openFilter(): string | undefined {
  const filter = opened === undefined ? buildFilter() : undefined;
  if (filter) {
    const folder = mkdtempSync(join(tmpdir(), "gyre-filter-"));
    try {
      const path = join(folder, "filter");
      writeFileSync(path, filter, { mode: 0o400 });
      opened = `/proc/${process.pid}/fd/${openSync(path, "r")}`;
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
  return opened;
}
