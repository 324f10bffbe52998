import type { TerminalCommand } from "../../ui/ui.ts";

/** `/tree`: all that was said in this session, to go on from any place in it. */
export const treeCommand: TerminalCommand = {
  name: "tree",
  about: "go to another place in this session",
  async run(_rest, world) {
    const { session } = world.harness;
    if (!session) throw new Error("Nothing was said in this session yet.");
    const { TreePanel } = await import("../../panels/tree.ts");
    const { ui } = world;
    const panel = new TreePanel({ session, theme: ui.theme, changed: () => ui.draw() });
    const chosen = await ui.open(panel);
    if (chosen) await world.reopen(chosen);
  },
};
