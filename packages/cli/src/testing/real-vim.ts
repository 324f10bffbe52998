import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { VimCase } from "./vim-cases.ts";

/** What keys made of a text. Columns are counted in code points. */
export interface VimState {
  readonly lines: readonly string[];
  readonly line: number;
  readonly column: number;
  /** What was cut or copied last; whole lines end with a line end. */
  readonly register: string;
}

/** The version in which brackets that follow the cursor count, too. */
const VERSION = "patch-9.0.1200";
const DEADLINE_MS = 600_000;
const OPTIONS = ["-u", "NONE", "-i", "NONE", "-N", "-n", "--not-a-term"];
const SETTINGS =
  "set nojoinspaces nomore noswapfile encoding=utf-8 noautoindent belloff=all notimeout nottimeout";

/** Whether there is a vim that is new enough and has text objects. */
export function findVim(): boolean {
  const condition = `has('textobjects') && has('${VERSION}')`;
  const { status } = spawnSync(
    "vim",
    ["-es", ...OPTIONS, "-c", `if ${condition} | cquit 7 | endif`, "-c", "qa!"],
    {
      stdio: "ignore",
      timeout: DEADLINE_MS,
    },
  );
  return status === 7;
}

/** What vim makes of each case: one process for all of them, with the keys as if they were typed. */
export function runVim(cases: readonly VimCase[]): VimState[] {
  const folder = mkdtempSync(join(tmpdir(), "gyre-vim-"));
  try {
    const [input, output, script] = ["cases.json", "states.json", "run.vim"].map((name) =>
      join(folder, name),
    ) as [string, string, string];
    writeFileSync(input, JSON.stringify(cases));
    writeFileSync(
      script,
      [
        SETTINGS,
        "let states = []",
        `for case in json_decode(readfile('${input}')[0])`,
        "  enew!",
        "  call setline(1, case.text)",
        // From here on it is another step to undo.
        "  let &g:undolevels = &g:undolevels",
        "  let @/ = ''",
        "  call setcharsearch({'char': '☃'})",
        "  call setcursorcharpos(case.line + 1, case.column + 1)",
        "  silent! call feedkeys(case.keys, 'tx')",
        "  call add(states, {'lines': getline(1, '$'), 'line': line('.') - 1,",
        "    \\ 'column': getcursorcharpos()[2] - 1, 'register': @\"})",
        "endfor",
        `call writefile([json_encode(states)], '${output}')`,
        "qa!",
        "",
      ].join("\n"),
    );
    spawnSync("vim", [...OPTIONS, "-S", script], {
      env: { ...process.env, TERM: "dumb", LC_ALL: "C.UTF-8" },
      stdio: "ignore",
      timeout: DEADLINE_MS,
    });
    return JSON.parse(readFileSync(output, "utf8")) as VimState[];
  } finally {
    rmSync(folder, { recursive: true });
  }
}
