export type EditFault =
  /** The edit makes no sense by itself. */
  | "empty"
  | "same"
  | "invalid"
  /** The old text is nowhere, or at more than one place. */
  | "missing"
  | "ambiguous"
  /** Found, but what the new text should become is not certain. */
  | "unclear"
  | "overlap"
  /** The file is not what the agent saw, or the agent never saw it. */
  | "changed"
  | "unread";

/** An edit that is not made, with what to do instead. Nothing was changed. */
export class EditError extends Error {
  readonly code: EditFault;
  constructor(code: EditFault, message: string) {
    super(message);
    this.name = "EditError";
    this.code = code;
  }
}
