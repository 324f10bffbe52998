/** A call that was not made. */
export interface DeniedCall {
  toolCallId: string;
  tool: string;
  /** As the model got it. */
  reason: string;
  /** What it would have done, for people; absent where a hook refused it. */
  summary?: string;
  /** A rule for `--allow` that would have allowed it. */
  rule?: string;
}
