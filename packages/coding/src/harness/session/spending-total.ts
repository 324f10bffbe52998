import { isRecord, type Usage } from "@gyre/ai";
import { type Session, SessionError } from "@gyre/sessions";

/** What sums are kept as in a session. */
export const TOTAL_KIND = "usageTotal";

/** What was paid for the entries of a session up to one of them. */
export interface SpendingTotal {
  /** A fork has the entry too, with other numbers and without other branches: it holds for its session alone. */
  readonly session: string;
  readonly until: number;
  readonly paid: Usage;
  readonly prompt: Usage;
  readonly purposes: Readonly<Record<string, Usage>>;
  readonly models: Readonly<Record<string, Usage>>;
}

/** The newest sums that a session has, if it has any. */
export async function findTotal(session: Session): Promise<SpendingTotal | undefined> {
  for (const id of session.findIds("custom").toReversed()) {
    const total = await readTotal(session, id);
    if (total) return total;
  }
  return undefined;
}

async function readTotal(session: Session, id: number): Promise<SpendingTotal | undefined> {
  try {
    const entry = await session.read(id);
    if (entry.type !== "custom" || entry.kind !== TOTAL_KIND || !isTotal(entry.data))
      return undefined;
    const { session: of, until } = entry.data;
    return of === session.header.id && until < id ? entry.data : undefined;
  } catch (error) {
    // The session reports its damage itself; without sums the entries are read.
    if (error instanceof SessionError) return undefined;
    throw error;
  }
}

function isTotal(data: unknown): data is SpendingTotal {
  return (
    isRecord(data) &&
    typeof data["session"] === "string" &&
    typeof data["until"] === "number" &&
    isRecord(data["paid"]) &&
    isRecord(data["prompt"]) &&
    isSums(data["purposes"]) &&
    isSums(data["models"])
  );
}

function isSums(value: unknown): boolean {
  return isRecord(value) && Object.values(value).every(isRecord);
}
