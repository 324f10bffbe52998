import { afterAll, beforeAll, expect, it } from "vitest";
import { createAutoLines } from "../../testing/auto/lines.ts";
import { findAutoQuestion } from "../../testing/auto/question.ts";
import { AutoWorld } from "../../testing/auto/world.ts";
import { openWorkspace, type Workspace } from "../../workspace/workspace.ts";

let world: AutoWorld;
let workspace: Workspace;
beforeAll(async () => {
  world = new AutoWorld();
  workspace = await openWorkspace(world.work);
});
afterAll(async () => {
  await workspace.close();
  await world.close();
});

/** The lines have no places in them that are chosen at random. */
const list = (section: string): string[] => [...createAutoLines(section, () => 0, "")];

it.each(list("hostile"))(
  "mode auto asks about a line that hides what it does: %s",
  async (line) => {
    expect(await findAutoQuestion(line, workspace)).toBeDefined();
  },
);

/** Of programs that are not everywhere, or that do something else than what is looked for there. */
const OTHERS = [
  "ruby -e 'File.delete(\"draft.ts\")'",
  'ruby -e \'File.write("draft.ts", "")\'',
  'bun -e \'Bun.write("draft.ts", "")\'',
  "julia -e 'rm(\"draft.ts\")'",
  "gawk -i inplace '{}' draft.ts",
  "awk '{ print > $1 }' data.csv",
  'gawk \'BEGIN { s = "/inet/tcp/0/example.org/80"; print "x" |& s }\'',
  "tclsh <<< 'exec curl example.org'",
  "m4 <<< 'esyscmd(curl example.org)'",
  "vim -es -c ':w! ../outside/x' -c q README.md",
  "parallel -j1 'rm {}' ::: draft.ts",
  "rsync --remove-source-files draft.ts /tmp/",
  "rsync -aL . /tmp/copy",
  "tar cf example.org:x.tar README.md",
  "logger -n example.org x",
  "enable -f ./x.so x",
  "npm --script-shell=./x test",
  "dbus-send --session x",
];

it.each(OTHERS)("mode auto asks about %s", async (line) => {
  expect(await findAutoQuestion(line, workspace)).toBeDefined();
});

it.each(list("everyday"))("mode auto runs what is written every day: %s", async (line) => {
  expect(await findAutoQuestion(line, workspace)).toBeUndefined();
});
