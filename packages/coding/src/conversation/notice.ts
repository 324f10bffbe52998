import type { UserMessage } from "@gyre/ai";

/** What the program reports to the model: the mode has changed, a job has ended. */
export interface NoticeMessage {
  role: "notice";
  text: string;
  /** In short, for people; empty: it is not shown. */
  summary: string;
  /** It has the facts that hold as a conversation begins or goes on. */
  isFacts?: true;
  /** The mode that it states. */
  mode?: string;
  timestamp: number;
}

declare module "@gyre/agent" {
  interface CustomAgentMessages {
    notice: NoticeMessage;
  }
}

/** A notice as a model gets it. */
export function toNoticeMessage({ text, timestamp }: NoticeMessage): UserMessage {
  return { role: "user", content: `[${text}]`, timestamp };
}
