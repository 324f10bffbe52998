import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../../tests/support/cases.ts";
import { type HistoryWorld, historyWorld } from "../../testing/history-world.ts";

const CASES = countCases(4, 40, "GYRE_REWIND_CASES");
const seed = pickSeed();

/** Numbers that a seed decides: below `n`. */
function makeRandom(from: number): (n: number) => number {
  let state = from >>> 0;
  return (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

type Random = (n: number) => number;

// Files and folders have names of their own: one never takes the place of the other.
const folder = (random: Random): string => `D${random(4)}${random(3) === 0 ? "/E/F" : ""}`;
const file = (random: Random): string => `${folder(random)}/f${random(6)}`;
const digit = (random: Random): string => String(random(10));

/** What agents run, and what is made to hide a change. */
const COMMANDS: readonly ((random: Random) => string)[] = [
  // Same length, and as a rule within the same tick as the last look.
  (r) => `printf ${digit(r)} > ${file(r)}`,
  (r) => `printf ${digit(r)} | dd of=${file(r)} conv=notrunc status=none`,
  // The time of the last change is set back.
  (r) => `f=${file(r)}; touch -r $f ../stamp && printf ${digit(r)} > $f; touch -r ../stamp $f`,
  (r) => `f=${file(r)}; printf ${digit(r)} > $f; touch -d @${random1970(r)} $f`,
  (r) => `f=${file(r)}; cp -p $f ../old; printf ${digit(r)} > $f; cp -p ../old $f`,
  (r) => `sed -i 's/^./${digit(r)}/' ${file(r)}`,
  (r) =>
    `f=${file(r)}; cp -p $f $f.new; printf ${digit(r)} > $f.new; touch -r $f $f.new; mv $f.new $f`,
  (r) => `mv -f ${file(r)} ${file(r)}`,
  (r) => `f=${file(r)}; g=${file(r)}; mv $f ../x; mv $g $f; mv ../x $g`,
  // Folders move, come back as another one, and go.
  (r) => `mv ${folder(r)} D${r(4)}${r(4)}`,
  (r) =>
    `d=${folder(r)}; cp -a $d ../copy; rm -rf $d; mv ../copy $d; printf ${digit(r)} > $d/f${r(6)}`,
  (r) => `a=D${r(4)}; b=D${r(4)}; mv $a ../swap && mv $b $a; mv ../swap $b`,
  (r) => `rm -rf ${folder(r)}`,
  (r) => `rm -f ${file(r)}`,
  (r) => `mkdir -p ${folder(r)}; printf ${digit(r)} > ${file(r)}`,
  // Two names for one file: written through the other one.
  (r) => `f=${file(r)}; g=${file(r)}; ln -f $f $g; printf ${digit(r)} >> $g`,
  (r) =>
    `f=${file(r)}; ln -f $f ../outside; printf ${digit(r)} > ../outside; touch -d @1 ../outside`,
  (r) => `ln -sfn f${r(6)} ${file(r)}`,
  (r) => `chmod ${["644", "600", "755"][r(3)]} ${file(r)}`,
  (r) => `for i in $(seq 40); do mkdir -p D${r(4)}/E$i; printf $i > D${r(4)}/E$i/f$i; done`,
  (r) => `truncate -s ${r(3)} ${file(r)}`,
  // What is ignored is not brought back, and hides nothing else.
  (r) => `printf ${digit(r)} > D${r(4)}/x.log; mkdir -p build; printf ${digit(r)} > build/f1`,
  (r) => `git add -A; git commit -qm x${digit(r)}; printf ${digit(r)} > ${file(r)}`,
  () => "git checkout -q -f -- 'D*'; git clean -qfd 'D*'",
  // Written to memory that is mapped, which no watcher of folders reports.
  (r) =>
    `f=${file(r)}; test -s $f && test ! -L $f && python3 -c 'import mmap,os,sys; p=sys.argv[1]; s=os.stat(p); f=open(p,"r+b"); m=mmap.mmap(f.fileno(),0); m[0:1]=b"${digit(r)}"; m.flush(); m.close(); f.close(); os.utime(p,ns=(s.st_atime_ns,s.st_mtime_ns))' $f`,
];

function random1970(random: Random): number {
  return random(1_000_000_000);
}

function run(w: HistoryWorld, command: string): void {
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: w.path(".."),
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_AUTHOR_NAME: "t",
    GIT_AUTHOR_EMAIL: "t@localhost",
    GIT_COMMITTER_NAME: "t",
    GIT_COMMITTER_EMAIL: "t@localhost",
  };
  // Many of them fail, as those of agents do: on files that are not there.
  execFileSync("bash", ["-c", `{ ${command}\n} 2>/dev/null; true`], { cwd: w.root, env });
}

/** All that is there but git's own files and what is ignored. */
async function readAll(w: HistoryWorld): Promise<Record<string, string>> {
  const files = Object.entries(await w.files());
  return Object.fromEntries(files.filter(([path]) => !/^\.git\/|\.log$|^build\//.test(path)));
}

async function check(number: number): Promise<void> {
  const random = makeRandom(seed + number);
  const w = await historyWorld(random(2) === 0 ? { maxOwnFiles: 0 } : {});
  const commands: string[] = [];
  try {
    await w.put(".gitignore", "*.log\nbuild/\n");
    for (let count = 0; count < 30; count++) await w.put(file(random), digit(random));
    for (let count = 0; count < 3; count++) await w.put(`user/f${count}`, "0");
    if (random(2) === 0) run(w, "git init -q; git add -A; git commit -qm first");
    const states: { entry: number; files: Record<string, string> }[] = [];
    for (let prompt = 0; prompt < 3; prompt++) {
      // What the user does between prompts stays.
      await w.put(`user/f${random(3)}`, digit(random));
      const files = await readAll(w);
      const entry = await w.run(async () => {
        for (let call = 0; call < 1 + random(4); call++) {
          const list = Array.from({ length: 1 + random(3) }, () => {
            return COMMANDS[random(COMMANDS.length)]?.(random) ?? "true";
          });
          commands.push(...list);
          await w.shell(async () => run(w, list.join("\n")));
        }
      });
      states.push({ entry, files });
    }
    const users = Object.entries(await readAll(w)).filter(([path]) => path.startsWith("user/"));
    expect(w.warnings).toEqual([]);
    for (const { entry, files } of states.reverse()) {
      const plan = await w.recorder.plan({ before: entry });
      expect(plan.leftOut).toEqual([]);
      const report = await w.recorder.apply(plan, { withConflicts: false });
      expect(report.failed).toEqual([]);
      expect(await readAll(w)).toEqual({ ...files, ...Object.fromEntries(users) });
    }
  } catch (error) {
    const how = `GYRE_SEED=${seed + number} GYRE_REWIND_CASES=1`;
    throw new Error(`Set ${how} to see this again. The commands:\n${commands.join("\n")}`, {
      cause: error,
    });
  } finally {
    await w.close();
  }
}

it(
  "brings back exactly what was there before random commands that real bash ran",
  { tags: "long", timeout: 600_000 },
  async () => {
    for (let number = 0; number < CASES; number++) await check(number);
  },
);
