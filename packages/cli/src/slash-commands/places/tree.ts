import type {
  CommandContext,
  CommandResult,
  OpenRequest,
} from "@gyre/coding/internal/conversation/command";
import type { Session } from "@gyre/sessions";
import { bringFiles, type PlaceContext } from "./bring-files.ts";

/** `/tree`: goes to another place of the session, with its files where they differ and the user wants it. */
export async function goInTree(
  context: CommandContext &
    PlaceContext & { chooseEntry?: (session: Session) => Promise<OpenRequest | undefined> },
): Promise<CommandResult | undefined> {
  const { session } = context.harness;
  if (!session) throw new Error("Nothing was said in this session yet.");
  const open = await context.chooseEntry?.(session);
  if (!open || !("entry" in open)) return open && { open };
  const { before, entry } = open;
  const gone = await bringFiles(context, {
    title: "Files are not as they were at this place",
    to: before === undefined ? { after: entry } : { before },
    done: "brought to this place",
  });
  return gone && { ...(gone.extent !== "files" && { open }), show: gone.show };
}
