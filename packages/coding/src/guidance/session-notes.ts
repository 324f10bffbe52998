import type { Session } from "@gyre/sessions";

/** What the notes of an agent are kept as in a session. */
const KIND = "notes";

/** Writes down what an agent has noted. On the disk when it settles. */
export async function saveNotes(session: Session, text: string): Promise<void> {
  await session.append({ type: "custom", kind: KIND, data: { text } });
}

/** The newest notes of the branch that is gone on with; "" where there are none. */
export async function notesIn(session: Session): Promise<string> {
  const custom = session.findIds("custom");
  if (custom.length === 0) return "";
  const branch = new Set(session.findBranch());
  for (const id of custom.toReversed()) {
    if (!branch.has(id)) continue;
    const entry = await session.read(id);
    if (entry.type !== "custom" || entry.kind !== KIND) continue;
    const { data } = entry;
    const isNotes = typeof data === "object" && data !== null && "text" in data;
    return isNotes && typeof data.text === "string" ? data.text : "";
  }
  return "";
}
