import type {
  ResponseComputerToolCall,
  ResponseInputItem,
} from "openai/resources/responses/responses";
import { toRecord } from "../../common/records.ts";
import { isImage, toFileUrl } from "../../files/file-facts.ts";
import { toFile } from "../../files/files.ts";
import type {
  Failure,
  FileContent,
  Message,
  ToolCall,
  ToolResultMessage,
  UserContent,
} from "../../messages/messages.ts";
import { listAcknowledged, listSafetyChecks } from "../../messages/safety-checks.ts";
import { parseJsonOr } from "../http/json.ts";

/** The tool of the application that runs the calls. */
export const COMPUTER = "computer";
export const COMPUTER_CALL = "computer_call";

/** The arguments of the application's tool: one form, whichever of its two the service sent. */
export function toComputerArguments(item: Readonly<Record<string, unknown>>): object {
  const { action, actions, pending_safety_checks: checks } = item;
  return {
    actions: Array.isArray(actions) ? actions : action ? [action] : [],
    ...(Array.isArray(checks) && checks.length > 0 && { pending_safety_checks: checks }),
  };
}

/** The item that a call was, which `reader.ts` has kept in its signature. */
export function readComputerCall({
  id,
  signature,
}: ToolCall): ResponseComputerToolCall | undefined {
  if (signature === undefined || !signature.startsWith("{")) return undefined;
  const item = toRecord(parseJsonOr(signature, {}));
  if (item["type"] !== COMPUTER_CALL || typeof item["id"] !== "string") return undefined;
  return { ...(item as unknown as ResponseComputerToolCall), call_id: id };
}

/** A call of the computer with what answers it. The service takes nothing but a screenshot. */
export interface ComputerAnswer {
  readonly item: ResponseInputItem.ComputerCallOutput;
  /** What else the tool gave. */
  readonly rest: readonly UserContent[];
}

/**
 * The answers to calls of the computer, by the ids of the calls. One that has no screenshot, because the
 * call was denied or because it failed, is `undefined`: call and result are those of a function then.
 */
export function findComputerAnswers(
  messages: readonly Message[],
): Map<string, ComputerAnswer | undefined> {
  const calls = new Map<string, ResponseComputerToolCall>();
  const answers = new Map<string, ComputerAnswer | undefined>();
  for (const message of messages) {
    if (message.role === "assistant") {
      for (const block of message.content) {
        const item = block.type === "toolCall" ? readComputerCall(block) : undefined;
        if (item) calls.set(item.call_id, item);
      }
    } else if (message.role === "toolResult") {
      const call = calls.get(message.toolCallId);
      if (call) answers.set(call.call_id, toAnswer(call, message));
    }
  }
  return answers;
}

function toAnswer(
  call: ResponseComputerToolCall,
  result: ToolResultMessage,
): ComputerAnswer | undefined {
  // The last one shows the screen after all of the actions.
  const at = result.content.findLastIndex(isPicture);
  const block = result.content[at];
  if (block === undefined || block.type === "text") return undefined;
  const acknowledged = listAcknowledged(result);
  const isOpen = ({ id }: { id: string }): boolean => !acknowledged.has(id);
  const open = listSafetyChecks(call).filter(isOpen);
  if (open.length > 0) throw new SafetyCheckError(call.call_id, open);
  const checks = call.pending_safety_checks ?? [];
  return {
    item: {
      type: "computer_call_output",
      call_id: call.call_id,
      output: { type: "computer_screenshot", ...toPlace(toFile(block)) },
      ...(checks.length > 0 && { acknowledged_safety_checks: checks }),
    },
    rest: result.content.filter((_, index) => index !== at),
  };
}

function isPicture(block: UserContent): boolean {
  return block.type !== "text" && isImage(toFile(block));
}

function toPlace(file: FileContent): { file_id: string } | { image_url: string } {
  const { source } = file;
  return source.type === "id" ? { file_id: source.id } : { image_url: toFileUrl(file) };
}

/** A call of the computer was run, and no person has approved what its service warned of. */
export class SafetyCheckError extends TypeError {
  readonly failure: Failure = { kind: "bad_request", retryable: false };
  constructor(callId: string, open: readonly { id: string; code?: string; message?: string }[]) {
    const named = open.map(({ code, id, message }) => message ?? code ?? id).join(" ");
    super(
      `The call "${callId}" of the computer has a safety check that its result does not acknowledge: ${named} Ask a person before the call runs, and give the result the details of acknowledgeSafetyChecks(args); a result without a screenshot denies the call.`,
    );
    this.name = "SafetyCheckError";
  }
}
