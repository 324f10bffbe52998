import { errorMessage, isRecord } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import type { Todo } from "@gyre/tools";

/** What the notes of an agent, and its list of steps, are kept as in a session. */
const NOTES = "notes";
const TODOS = "todos";

/** Writes down what an agent has noted. On the disk when it settles. */
export async function saveNotes(session: Session, text: string): Promise<void> {
  await session.append({ type: "custom", kind: NOTES, data: { text } });
}

/** The newest notes of the branch that is gone on with; "" where there are none. */
export async function notesIn(session: Session): Promise<string> {
  const data = await findNewest(session, NOTES);
  return isRecord(data) && typeof data["text"] === "string" ? data["text"] : "";
}

/** Writes down the list of steps. Never rejects: the list is shown without that. */
export function saveTodos(
  session: Session,
  todos: readonly Todo[],
  warn: (text: string) => void,
): void {
  session.append({ type: "custom", kind: TODOS, data: { todos } }).catch((error: unknown) => {
    warn(`The list of steps is missing in the session: ${errorMessage(error)}`);
  });
}

/** The newest list of steps of the branch that is gone on with. */
export async function todosIn(session: Session): Promise<Todo[]> {
  const data = await findNewest(session, TODOS);
  const todos = isRecord(data) ? data["todos"] : undefined;
  return Array.isArray(todos) ? todos.filter(isTodo) : [];
}

function isTodo(value: unknown): value is Todo {
  if (!isRecord(value)) return false;
  const { content, status } = value;
  return (
    typeof content === "string" &&
    (status === "pending" || status === "in_progress" || status === "done")
  );
}

async function findNewest(session: Session, kind: string): Promise<unknown> {
  const custom = session.findIds("custom");
  if (custom.length === 0) return undefined;
  const branch = new Set(session.findBranch());
  for (const id of custom.toReversed()) {
    if (!branch.has(id)) continue;
    const entry = await session.read(id);
    if (entry.type === "custom" && entry.kind === kind) return entry.data;
  }
  return undefined;
}
