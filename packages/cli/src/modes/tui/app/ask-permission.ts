import type { Clock } from "@gyre/ai";
import { type ApprovalAnswer, type ApprovalRequest, ruleFor } from "@gyre/tools";
import type { Theme } from "../terminal/theme.ts";
import type { Transcript } from "../transcript/transcript.ts";
import type { Window } from "./window.ts";

export interface AskingPlace {
  window: Window;
  transcript: Transcript;
  theme: Theme;
  clock: Clock;
  /** The folder to work in, absolute. */
  cwd: string;
}

/** Asks the user about a call. Undefined where the user left the question, or the call was aborted, which closes it. */
export async function askPermission(
  request: ApprovalRequest,
  { clock, cwd, theme, transcript, window }: AskingPlace,
): Promise<ApprovalAnswer | undefined> {
  const { PermissionPanel } = await import("../panels/permission.ts");
  const { callId, signal } = request;
  if (signal?.aborted) return undefined;
  const rule = ruleFor(request);
  const panel = new PermissionPanel(request, {
    theme,
    cwd,
    now: () => clock.now(),
    ...(rule !== undefined && { rule }),
  });
  const withdraw = (): void => window.withdraw(panel);
  signal?.addEventListener("abort", withdraw, { once: true });
  const answered = transcript.asks(callId);
  try {
    return await window.open(panel);
  } finally {
    answered();
    signal?.removeEventListener("abort", withdraw);
  }
}
