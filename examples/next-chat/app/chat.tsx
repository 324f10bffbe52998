"use client";

import { useChat } from "@ai-sdk/react";
import {
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from "ai";
import { useState } from "react";

export function Chat({ id, messages: stored }: { id: string; messages: UIMessage[] }) {
  const [text, setText] = useState("");
  const { messages, status, error, sendMessage, addToolApprovalResponse } = useChat({
    id,
    messages: stored,
    // An answer goes on when the page is loaded again.
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const isRunning = status === "submitted" || status === "streaming";
  // `stop` of useChat leaves the run to itself, so that it can be resumed.
  const stop = () => fetch(`/api/chat/${id}/stop`, { method: "POST" });

  return (
    <>
      <main role="log">
        {messages.map(({ id, role, parts }) => (
          <article key={id} data-role={role}>
            {parts.map((part, at) => (
              <Part key={at} part={part} answer={addToolApprovalResponse} />
            ))}
          </article>
        ))}
      </main>
      {error && <p role="alert">{error.message}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void sendMessage({ text });
          setText("");
        }}
      >
        <input
          aria-label="Message"
          value={text}
          onChange={({ target }) => setText(target.value)}
          autoComplete="off"
          required
        />
        <button disabled={isRunning}>Send</button>
        <button type="button" disabled={!isRunning} onClick={() => void stop()}>
          Stop
        </button>
      </form>
    </>
  );
}

interface PartProps {
  part: UIMessage["parts"][number];
  answer: (response: { id: string; approved: boolean }) => unknown;
}

/** A text, or a call of a tool with its question and its result. */
function Part({ part, answer }: PartProps) {
  if (part.type === "text") return <p>{part.text}</p>;
  if (!isToolUIPart(part)) return null;
  return (
    <div>
      {getToolName(part)} <code>{JSON.stringify(part.input)}</code>
      {part.state === "approval-requested" && (
        <p>
          May it run?{" "}
          <button onClick={() => answer({ id: part.approval.id, approved: true })}>Allow</button>
          <button onClick={() => answer({ id: part.approval.id, approved: false })}>Deny</button>
        </p>
      )}
      {part.state === "output-available" && <p>{String(part.output)}</p>}
      {part.state === "output-denied" && <p>It was denied.</p>}
      {part.state === "output-error" && <p role="alert">{part.errorText}</p>}
    </div>
  );
}
