import type { PendingCall } from "@gyre/agent";
import { isRecord } from "@gyre/ai";
import { type Access, type ApprovalRequest, ruleFor, rulesFor } from "@gyre/tools";

/** Tools that change files of the workspace. */
const EDITS = ["write", "edit", "apply_patch"] as const;

/** The question about a call that a suspended run has left: what a person is asked where they can be asked at once. */
export function readQuestion({
  toolCall,
  reason,
  access,
  fingerprint = "",
}: PendingCall): ApprovalRequest {
  const { question, ...shown } = access ?? {};
  return {
    callId: toolCall.id,
    tool: toolCall.name,
    args: toolCall.arguments,
    reason,
    // What permissions have written.
    ...(access && { access: shown as unknown as Access }),
    ...(isRecord(question) && (question as Partial<ApprovalRequest>)),
    fingerprint,
  };
}

/** The rules by which all edits of the session are allowed, where a call is one. */
export function listEditRules({
  access,
  tool,
}: Pick<ApprovalRequest, "access" | "tool">): readonly [string, ...string[]] | undefined {
  const isEdit =
    access?.kind === "write" && !access.destructive && EDITS.some((name) => name === tool);
  return isEdit ? EDITS : undefined;
}

/** All rules that a person can give with the answer to a question. */
export async function listOfferedRules(request: ApprovalRequest): Promise<string[]> {
  const exact = ruleFor(request);
  return [
    ...((await rulesFor(request)) ?? []),
    ...(exact === undefined ? [] : [exact]),
    ...(listEditRules(request) ?? []),
  ];
}
