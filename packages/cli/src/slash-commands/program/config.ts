import { type CommandResult, text } from "@gyre/coding/internal/conversation/command";
import type { SettingsLayer } from "@gyre/coding/internal/settings/load";
import type { Settings } from "@gyre/coding/internal/settings/settings";
import { listSettings } from "../../text/settings-text.ts";

/** The settings that are set, with where from; with `all`, those that are not set, too. */
export function showSettings(
  rest: string,
  {
    settings = {},
    layers = [],
  }: { settings?: Settings; layers?: readonly SettingsLayer[] | undefined },
): CommandResult {
  if (rest !== "" && rest !== "all") {
    throw new Error(`/config takes "all" or nothing, not "${rest}".`);
  }
  const rows = listSettings(settings, layers).filter(
    ({ from }) => rest === "all" || from.length > 0,
  );
  const more = rest === "all" ? "" : " `/config all` shows the others, too.";
  const how = text(
    `Settings are in files, variables and options: \`gyre config\` names the files, \`/model\`, \`/mode\` and others change them for this conversation.${more}`,
  );
  if (rows.length === 0) return { show: [text("Nothing is set: all is as usual."), how] };
  return {
    show: [
      {
        type: "table",
        columns: ["setting", "value", "from"],
        rows: rows.map(({ name, value, from }) => [
          { code: name },
          value.replaceAll(/\s*\n\s*/g, " "),
          from.length > 0 ? from.join(", ") : "default",
        ]),
      },
      how,
    ],
  };
}
