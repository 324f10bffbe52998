import type { PartialArg } from "./partial-args.ts";

/** A part of a content, as requests and responses have it. */
export interface Part {
  text?: string;
  thought?: boolean;
  thoughtSignature?: string;
  inlineData?: { mimeType?: string; data?: string };
  fileData?: { mimeType?: string; fileUri: string };
  functionCall?: RawCall;
  functionResponse?: { id?: string; name: string; response: object; parts?: Part[] };
}

/** A call as the service writes it; its arguments may come in pieces. */
export interface RawCall {
  id?: string;
  name?: string;
  args?: Record<string, unknown> | null;
  partialArgs?: PartialArg[];
  willContinue?: boolean;
}
