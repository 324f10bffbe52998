import { homedir } from "node:os";
import { isRecord, nearNames } from "@gyre/ai";
import { readJsonFile, writeJsonFile } from "@gyre/coding/internal/core/json-file";
import { findUserFile, mustBe } from "@gyre/coding/internal/settings/load";
import { isSettingName, SETTING_NAMES, SETTINGS } from "@gyre/coding/internal/settings/table";
import { asCode } from "../../text/markdown-text.ts";
import type { FamiliarContext } from "./context.ts";

/** `/config KEY VALUE`: writes a setting into the user's file, for the next start. */
export async function setSetting(
  key: string,
  written: string,
  { env, setup: { cwd } }: Pick<FamiliarContext, "env" | "setup">,
): Promise<string> {
  if (!isSettingName(key)) {
    const near = nearNames(key, SETTING_NAMES);
    const hint = near.length > 0 ? `Did you mean ${near.join(" or ")}?` : "/config all lists them.";
    throw new Error(`"${key}" is no setting. ${hint}`);
  }
  const { kind } = SETTINGS[key];
  const value: unknown = kind.read(written) ?? parse(written);
  if (!kind.is(value)) throw new Error(await mustBe(key, written, kind));
  const { path } = findUserFile({ cwd, env, home: homedir() });
  const { text, value: all } = readJsonFile(path);
  if (!isRecord(all)) throw new Error(`${path} must hold a JSON object: fix it first.`);
  writeJsonFile(path, text, { ...all, [key]: value });
  return `${asCode(key)} is ${asCode(JSON.stringify(value))} in ${asCode(path)}, from the next start on.`;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // It is no value then, and the message says which ones are.
    return undefined;
  }
}
