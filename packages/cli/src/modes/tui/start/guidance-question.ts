import { relative } from "node:path";
import type { HeldText } from "@gyre/coding/internal/guidance/agent-texts";
import { realPath } from "@gyre/coding/internal/settings/project-file";
import { oneLine } from "@gyre/coding/internal/text/shown-text";
import { type DiffFile, diffTexts, fileRows } from "../transcript/diff-view.ts";
import type { Theme } from "../terminal/theme.ts";
import { wrapText } from "../terminal/wrap.ts";
import { type Block, cacheRows } from "../ui/block.ts";
import type { PanelQuestion } from "../ui/ui.ts";

/** Of all changes together; the rest is counted, and is in the files. */
const MAX_SHOWN_ROWS = 200;

/** What agents wrote for agents, and whether it is used from now on. */
export interface GuidanceQuestion {
  /** What is different, above the question. */
  listing: Block;
  question: PanelQuestion<"accept" | "leave">;
}

/** Shows it as it would be read. There is at least one text. */
export function askAboutGuidance(
  held: readonly HeldText[],
  { cwd, theme, columns }: { cwd: string; theme: Theme; columns: number },
): GuidanceQuestion {
  const from = realPath(cwd);
  const files = held.map(({ path, before = "", content }): DiffFile => ({
    path: relative(from, path),
    lines: diffTexts(before, content.toString("utf8")),
  }));
  const names = files.map(({ path }) => oneLine(path)).join(", ");
  const them = files.length === 1 ? "it" : "them";
  return {
    listing: cacheRows((width) => [
      ...wrapText(`An agent changed what agents are to follow: ${names}`, width, theme.strong),
      ...fileRows(files, { theme, columns: width, maxRows: MAX_SHOWN_ROWS }),
    ]),
    question: {
      title: `Follow ${names} as changed by an agent?`,
      about: wrapText(
        "Until you accept it, it is left out of what the model gets.",
        columns,
        theme.dim,
      ),
      choices: [
        { value: "accept", label: `Use ${them} from now on`, key: "y" },
        { value: "leave", label: `Leave ${them} out`, detail: "and go on without", key: "n" },
      ],
      requiresConfirmation: true,
      // Enter without reading must not accept anything.
      start: 1,
    },
  };
}
