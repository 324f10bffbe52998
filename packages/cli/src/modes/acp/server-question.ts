import { randomUUID } from "node:crypto";
import type {
  CreateElicitationRequest,
  CreateElicitationResponse,
  RequestPermissionRequest,
} from "@agentclientprotocol/sdk";
import { answerServer } from "@gyre/coding/internal/conversation/server-question";
import { type McpAnswer, type McpField, type McpQuestion, toFormSchema } from "@gyre/mcp";

/** How an editor asks its user. */
export interface AskingEditor {
  /** Absent: it has no forms, or shows no pages. */
  elicit?(
    request: CreateElicitationRequest,
    signal: AbortSignal,
  ): Promise<CreateElicitationResponse>;
  /** Has the user choose one of the options; undefined where none is chosen. */
  choose(
    request: Omit<RequestPermissionRequest, "sessionId">,
    signal: AbortSignal,
  ): Promise<string | undefined>;
  /** Shows a line. */
  notice(text: string): Promise<void>;
}

/**
 * Has the user of an editor answer an MCP server: in a form of the editor, or where it has none by the
 * choices that it shows for permissions. What would have to be typed is declined there.
 */
export async function answerInEditor(
  question: McpQuestion,
  sessionId: string,
  editor: AskingEditor,
  signal: AbortSignal,
): Promise<McpAnswer> {
  if (editor.elicit) return readAnswer(await editor.elicit(toRequest(question, sessionId), signal));
  const fields = question.kind === "form" ? question.fields : [];
  if (fields.some((field) => field.isRequired && field.default === undefined && !isChosen(field))) {
    await editor.notice(
      `The MCP server "${question.server}" asks for something that this editor cannot ask you: ${question.message}`,
    );
    return { action: "decline" };
  }
  const shown =
    question.kind === "form" ? { ...question, fields: fields.filter(isChosen) } : question;
  return answerServer(shown, {
    choose: async ({ about = [], choices, title }) => {
      const chosen = await editor.choose(
        {
          toolCall: {
            toolCallId: `mcp-question-${randomUUID()}`,
            title,
            kind: "other",
            status: "pending",
            content: [{ type: "content", content: { type: "text", text: about.join("\n") } }],
          },
          options: choices.map(({ label }, index) => ({
            optionId: String(index),
            name: label,
            kind: /^(?:Decline|No)$/.test(label) ? "reject_once" : "allow_once",
          })),
        },
        signal,
      );
      return chosen === undefined ? undefined : choices[Number(chosen)]?.value;
    },
    line: () => Promise.resolve(undefined),
  });
}

/** Whether a value is one of a list, which any editor can show. */
function isChosen({ type }: McpField): boolean {
  return type === "boolean" || type === "choice";
}

function toRequest(question: McpQuestion, sessionId: string): CreateElicitationRequest {
  const { message, server } = question;
  const text = `The MCP server "${server}" asks: ${message}`;
  if (question.kind === "url") {
    return {
      mode: "url",
      sessionId,
      elicitationId: randomUUID(),
      url: question.url,
      message: text,
    };
  }
  return { mode: "form", sessionId, requestedSchema: toFormSchema(question.fields), message: text };
}

function readAnswer(response: CreateElicitationResponse): McpAnswer {
  if (response.action === "decline") return { action: "decline" };
  if (response.action !== "accept") return { action: "cancel" };
  const { content } = response;
  // What is in it is checked against the fields before it is sent.
  return {
    action: "accept",
    ...(typeof content === "object" && content !== null && { content: { ...content } }),
  };
}
